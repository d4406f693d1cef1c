// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	// label is on every canary; its value is the run that sent it. All names begin with prefix.
	label  = "open-cluster-management.io/kubectl-ocm-canary"
	prefix = "kubectl-ocm-canary-"
	// place is the namespace of the ConfigMap, and value the name of the feedback.
	place, value = metav1.NamespaceDefault, "run"
	// parallel bounds how many canaries are under way, and farewell how long each request takes that
	// an interrupt does not cut off.
	parallel = 64
	farewell = 10 * time.Second
	// defaultPatience is how long a cluster may take for each way.
	defaultPatience = 30 * time.Second
)

// Options say where to send canaries.
type Options struct {
	fleet.Common
	// Hub is the hub, and Clusters are available clusters of it.
	Hub      *fleet.Cluster
	Clusters []string
	// Patience is how long a cluster may take for each way; 0 means half a minute.
	Patience time.Duration
}

// Flight is what became of a canary.
type Flight struct {
	Cluster string `json:"cluster"`
	// Applied, Reported and Gone say how long it took until the agent had applied it and reported
	// its content, both since it was sent, and until it was gone again, since it was deleted.
	Applied  time.Duration `json:"appliedNanoseconds,omitempty"`
	Reported time.Duration `json:"reportedNanoseconds,omitempty"`
	Gone     time.Duration `json:"goneNanoseconds,omitempty"`
	// Lost is why it did not arrive, and Stuck why it is not gone.
	Lost  string `json:"lost,omitempty"`
	Stuck string `json:"stuck,omitempty"`
	// Work is the name of its work.
	Work string `json:"work"`
}

// Rights are what the caller needs in the namespaces of clusters; without a namespace, in all.
func Rights(namespaces ...string) []fleet.Right {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var out []fleet.Right
	for _, namespace := range namespaces {
		out = append(out, fleet.Right{Resource: fleet.ManifestWorks, Namespace: namespace, Verbs: []string{"create", "get", "list", "watch", "delete"}})
	}
	return out
}

// Sweep deletes the canaries that earlier runs have left in the namespaces of clusters, without a
// namespace in all, and returns those that it deleted and those whose deletion hangs.
func Sweep(ctx context.Context, o Options, namespaces ...string) (removed, stuck []Flight, err error) {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	for _, namespace := range namespaces {
		items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManifestWorks, Namespace: namespace, Labels: label})
		if err != nil {
			return removed, stuck, fleet.Explain("listing canaries", o.Hub, err)
		}
		for i := range items {
			u := &items[i]
			f := Flight{Cluster: u.GetNamespace(), Work: u.GetName()}
			switch at := u.GetDeletionTimestamp(); {
			case !strings.HasPrefix(u.GetName(), prefix):
			case at == nil:
				if err := remove(ctx, o.Hub, u); err != nil {
					return removed, stuck, fleet.Explain("deleting "+fleet.Describe(u), o.Hub, err)
				}
				removed = append(removed, f)
			case o.Hub.Now(r.Now()).Sub(at.Time) > cmp.Or(o.Patience, defaultPatience):
				f.Stuck = "it is being deleted since " + at.UTC().Format(time.RFC3339)
				stuck = append(stuck, f)
			}
		}
	}
	return removed, stuck, nil
}

// remove deletes a work of ours: the one with this UID, if that is known.
func remove(ctx context.Context, hub *fleet.Cluster, u *unstructured.Unstructured) error {
	var o metav1.DeleteOptions
	if uid := u.GetUID(); uid != "" {
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := hub.Client.Resource(fleet.ManifestWorks).Namespace(u.GetNamespace()).Delete(ctx, u.GetName(), o)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Send sends a canary to each cluster and waits until it is back. Whatever happens, it deletes what
// it created, unless the process is killed. Flights are in the order of the clusters.
func Send(ctx context.Context, o Options) []Flight {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	run := strings.ToLower(rand.Text())[:8]
	out := make([]Flight, len(o.Clusters))
	var mu sync.Mutex
	back := 0
	tell := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		back += n
		r.Detail(fmt.Sprintf("%d of %d are back", back, len(o.Clusters)))
	}
	r.Step("canaries")
	tell(0)
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, cluster := range o.Clusters {
		group.Go(func() error {
			f := &flight{Flight: &out[i], Options: &o, r: r, run: run}
			out[i] = Flight{Cluster: cluster, Work: prefix + run}
			f.fly(ctx)
			tell(1)
			return nil
		})
	}
	_ = group.Wait()
	if slices.ContainsFunc(out, func(f Flight) bool { return f.Lost != "" || f.Stuck != "" }) {
		r.Warn("not all are back", nil)
	} else {
		r.Done(fleet.Many(len(out), "cluster"))
	}
	return out
}

// flight is one canary under way.
type flight struct {
	*Flight
	*Options
	r   *fleet.Run
	run string
}

func (f *flight) fly(ctx context.Context) {
	if ctx.Err() != nil {
		f.Lost = "there was no time left to send it"
		return
	}
	sent := f.r.Now()
	// An interrupt does not cut it off: the hub could store it after it was asked to delete it.
	whole, stop := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer stop()
	u, err := f.Hub.Client.Resource(fleet.ManifestWorks).Namespace(f.Cluster).Create(whole, f.work(), metav1.CreateOptions{FieldManager: fleet.FieldManager})
	if err != nil {
		f.Lost = fleet.OneLine(err.Error())
		u = f.work() // it may have been stored nevertheless
	} else {
		f.Lost = f.arrive(ctx, sent, u.GetUID())
	}
	// The context may have ended; what was sent is deleted nevertheless.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	deleted := f.r.Now()
	if err := remove(last, f.Hub, u); err != nil {
		f.Stuck = fleet.OneLine(err.Error())
		return
	}
	if u.GetUID() == "" || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	patient, done := context.WithTimeout(ctx, f.Patience)
	defer done()
	q := f.query()
	if err := await.Gone(patient, q, u.GetUID(), func(*unstructured.Unstructured) {}); err != nil {
		f.Stuck = "its agent has not removed it within " + f.Patience.String()
		return
	}
	f.Gone = f.r.Now().Sub(deleted)
}

func (f *flight) query() await.Query {
	return await.Query{Client: f.Hub.Client, Resource: fleet.ManifestWorks, Namespace: f.Cluster, Name: f.Work, Clock: f.r.Given.Clock}
}

// arrive waits until the agent has applied the canary and reports it, and returns why not.
func (f *flight) arrive(ctx context.Context, sent time.Time, uid types.UID) string {
	ctx, cancel := context.WithTimeout(ctx, f.Patience)
	defer cancel()
	state := "the hub does not show it"
	err := await.Objects(ctx, f.query(), func(items []*unstructured.Unstructured) (bool, error) {
		if len(items) == 0 || items[0].GetUID() != uid || items[0].GetDeletionTimestamp() != nil {
			return false, errors.New("somebody else has deleted it, such as another run of this check")
		}
		info, err := work.InfoOf(items[0])
		if err != nil {
			return false, err
		}
		if info.Applied == string(metav1.ConditionTrue) && f.Applied == 0 {
			f.Applied = f.r.Now().Sub(sent)
		}
		switch {
		case info.Applied == "":
			state = "the agent has not answered"
		case info.Applied != string(metav1.ConditionTrue), info.Available != string(metav1.ConditionTrue):
			state = fleet.OrElse(info.Message, "Applied="+info.Applied+", Available="+fleet.OrElse(info.Available, "unknown"))
		case f.reported(items[0]) != f.run:
			state = "it is applied, and the agent has not reported its content"
		default:
			f.Reported = f.r.Now().Sub(sent)
			return true, nil
		}
		return false, nil
	})
	var expired *await.Expired
	switch {
	case err == nil:
		return ""
	case errors.As(err, &expired):
		return state
	}
	return fleet.OneLine(err.Error())
}

// reported returns the content of the ConfigMap as the agent has reported it.
func (f *flight) reported(u *unstructured.Unstructured) string {
	w, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return ""
	}
	for _, m := range w.Status.ResourceStatus.Manifests {
		for _, v := range m.StatusFeedback.Values {
			if v.Name == value && v.FieldValue.String != nil {
				return *v.FieldValue.String
			}
		}
	}
	return ""
}

// work returns the canary: one ConfigMap whose content is the run.
func (f *flight) work() *unstructured.Unstructured {
	u := fleet.Named(workv1.GroupVersion.WithKind("ManifestWork"), f.Cluster, f.Work)
	u.SetLabels(map[string]string{label: f.run})
	u.Object["spec"] = map[string]any{
		"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": f.Work, "namespace": place, "labels": map[string]any{label: f.run}},
			"data": map[string]any{value: f.run},
		}}},
		"manifestConfigs": []any{map[string]any{
			"resourceIdentifier": map[string]any{"group": "", "resource": "configmaps", "name": f.Work, "namespace": place},
			"feedbackRules": []any{map[string]any{"type": "JSONPaths", "jsonPaths": []any{
				map[string]any{"name": value, "path": ".data." + value},
			}}},
		}},
	}
	return u
}
