// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// RestoreOptions say what to restore.
type RestoreOptions struct {
	fleet.Common
	// Hub is the new hub.
	Hub *fleet.Cluster
	// File is the backup.
	File io.ReadSeeker
	// Merge adds what is missing to a hub that has objects; those are kept as they are.
	Merge bool
	// Release evaluates placements again although clusters have not returned.
	Release bool
}

// RestoreResult is what was restored, or would be.
type RestoreResult struct {
	// Backup is the first line of the file.
	Backup Header `json:"backup"`
	// Server and CAHash are how agents reach this hub.
	Server string `json:"server"`
	CAHash string `json:"caHash,omitempty"`
	// Action is created, or unchanged when all was there.
	Action fleet.Action `json:"action"`
	// Kinds are the numbers of objects, in the order of the restore.
	Kinds []KindResult `json:"kinds"`
	// Owners is the number of owners that objects have lost, because they are not in the backup.
	Owners int `json:"droppedOwners"`
	// Away are the clusters that were available and have not returned.
	Away []string `json:"away,omitempty"`
	// Held is the number of placements that are not evaluated yet.
	Held int `json:"heldPlacements"`
	// Unchecked is the number of objects that a dry run on the server could not check, because
	// something that the restore creates first is not there.
	Unchecked int `json:"unchecked,omitempty"`
}

// KindResult counts the objects of one kind.
type KindResult struct {
	Kind    string `json:"kind"`
	Created int    `json:"created"`
	// Kept are objects that were there, and stay as they are.
	Kept int `json:"kept"`
}

// Moved reports whether agents have to be told another address or CA.
func (r *RestoreResult) Moved() bool {
	return r.Server != r.Backup.Server || r.CAHash != r.Backup.CAHash
}

// contents is what the first reading of a file found.
type contents struct {
	header Header
	footer Footer
	// available are the clusters that were available.
	available map[string]bool
}

// restorer is one restore in progress.
type restorer struct {
	RestoreOptions
	run    *fleet.Run
	file   contents
	result RestoreResult
	owners owners

	mu sync.Mutex
	// refused are the objects that the server would refuse, and why.
	refused []string
}

// The writes of a restore are many and small.
const (
	writesPerSecond = 500
	writers         = 16
)

// Restore restores a hub. Nothing is written before the whole file was checked. It can be repeated
// after any failure. With Wait it returns when the clusters have returned that were available, and
// placements are evaluated again.
func Restore(ctx context.Context, o RestoreOptions) (RestoreResult, error) {
	ctx, cancel, run := o.Begin(ctx)
	defer cancel()
	config := rest.CopyConfig(o.Hub.Config)
	config.QPS, config.Burst = writesPerSecond, writesPerSecond
	var err error
	if o.Hub, err = fleet.Connect(config, o.Hub.Context); err != nil {
		return RestoreResult{}, err
	}
	r := &restorer{RestoreOptions: o, run: run, result: RestoreResult{Action: fleet.Unchanged, Kinds: []KindResult{}}}
	run.Step("preflight")
	state, err := r.preflight(ctx)
	if err != nil {
		return r.result, run.Fail(err)
	}
	run.Done(fmt.Sprintf("backup of %s, %s", r.file.header.Server, r.file.header.Created.Format("2006-01-02 15:04 MST")))
	switch {
	case o.Reads():
		return r.result, run.Fail(r.plan(ctx))
	case state == stateDone && !o.Merge:
		return r.result, nil
	}
	for _, phase := range []func(context.Context) error{r.begin, r.write, r.accept, r.awaitClusters, r.release} {
		if err := phase(ctx); err != nil {
			return r.result, run.Fail(err)
		}
	}
	return r.result, nil
}

// scan reads the whole file, and calls do with each object.
func (r *restorer) scan(do func(*unstructured.Unstructured) error) (*reader, error) {
	if _, err := r.File.Seek(0, io.SeekStart); err != nil {
		return nil, fleet.Fail("reading the backup", err, nil)
	}
	in, err := open(r.File)
	for err == nil {
		var u *unstructured.Unstructured
		if u, err = in.next(); err == nil {
			err = do(u)
		}
	}
	if errors.Is(err, io.EOF) {
		return in, nil
	}
	return in, err
}

// check reads the whole file once, before the first write.
func (r *restorer) check() error {
	r.file.available = map[string]bool{}
	in, err := r.scan(func(u *unstructured.Unstructured) error {
		if u.GetKind() == kindCluster && fleet.ConditionTrue(u, clusterv1.ConditionAvailable) {
			r.file.available[u.GetName()] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.file.header, r.file.footer = in.Header, in.Footer
	r.result.Backup = in.Header
	return nil
}

// preflight only reads.
func (r *restorer) preflight(ctx context.Context) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if _, err := fleet.ServerVersion(ctx, r.Hub); err != nil {
		return "", err
	}
	if err := r.checkHub(ctx); err != nil {
		return "", err
	}
	at, hash, err := trust.OfHub(ctx, r.Hub)
	if err != nil {
		return "", err
	}
	r.result.Server, r.result.CAHash = at.Server, hash
	state, err := r.state(ctx)
	if err != nil || state != "" || r.Merge {
		return state, err
	}
	return "", r.checkEmpty(ctx)
}
