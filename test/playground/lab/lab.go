// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// Hub is the name of the hub's cluster; the others are cluster1, cluster2 and so on.
const Hub = "hub"

// recordFile is the name of the file with the record.
const recordFile = "lab.json"

// record is what a later command must know of a lab.
type record struct {
	// Clusters is the number of managed clusters.
	Clusters int `json:"clusters"`
	// Setup is what the clusters run; one that runs something else is started again.
	Setup Setup `json:"setup"`
	// Kubeconfigs are the files that may have entries of the lab.
	Kubeconfigs []string `json:"kubeconfigs"`
	// Before is the current-context that the lab's hub replaced.
	Before string `json:"before,omitempty"`
}

// lab is one lab, locked by this process.
type lab struct {
	name, dir string
	record    record
	// known is set if the lab was there before.
	known bool
}

// ErrNone is returned for a lab that does not exist.
var ErrNone = errors.New("there is no such playground")

// open locks a lab and reads its record; create makes its folder if there is none.
func open(root, name string, create bool) (*lab, func(), error) {
	l := &lab{name: name, dir: filepath.Join(root, name)}
	if create {
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			return nil, nil, err
		}
	}
	unlock, err := process.Lock(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNone
	}
	if err != nil {
		return nil, nil, err
	}
	if err := l.read(); err != nil {
		unlock()
		return nil, nil, err
	}
	return l, unlock, nil
}

// read reads the record. A lab without one was left by a crash, before anything was
// started or after everything was ended.
func (l *lab) read() error {
	file := filepath.Join(l.dir, recordFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &l.record)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	l.known = true
	return nil
}

// write writes the record, by rename so that no reader sees half of it.
func (l *lab) write() error {
	data, err := json.MarshalIndent(l.record, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the record of %s: %w", l.name, err)
	}
	file := filepath.Join(l.dir, recordFile)
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// clusters returns the names of all clusters of the lab.
func (l *lab) clusters() []string {
	names := []string{Hub}
	for i := range l.record.Clusters {
		names = append(names, "cluster"+strconv.Itoa(i+1))
	}
	return names
}

// Context returns the name of the context of a cluster.
func Context(lab, cluster string) string { return "ocm-" + lab + "-" + cluster }

func (l *lab) folder(cluster string) string { return filepath.Join(l.dir, cluster) }

func (l *lab) adminFile(cluster string) string {
	return filepath.Join(l.folder(cluster), "admin.kubeconfig")
}

// connect opens a cluster as its administrator.
func (l *lab) connect(cluster string) (*fleet.Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.adminFile(cluster))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", cluster, err)
	}
	return fleet.Connect(config, Context(l.name, cluster))
}

// Names returns the labs below root, sorted.
func Names(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for playgrounds: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
