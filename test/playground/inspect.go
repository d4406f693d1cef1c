// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"path/filepath"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// Health is what the folder of a cluster tells about it.
type Health struct {
	// Port of kube-apiserver, 0 for a cluster that was never started.
	Port int
	// Running are the processes of the cluster and those of its pods.
	Running []process.Running
	// Ended are the processes of the cluster that should run, and do not.
	Ended []Component
}

// PID returns the process of a component, 0 if it does not run.
func (h Health) PID(dir string, component Component) int {
	i := slices.IndexFunc(h.Running, func(p process.Running) bool { return p.Dir == dir && p.Name == string(component) })
	if i < 0 {
		return 0
	}
	return h.Running[i].PID
}

// Inspect reads the state of the cluster with a process node in the folder dir.
func Inspect(dir string) (Health, error) {
	known, err := readState(filepath.Join(dir, stateFile))
	if err != nil {
		return Health{}, err
	}
	h := Health{Port: known.Port}
	if h.Running, err = process.List(dir); err != nil {
		return Health{}, err
	}
	for _, component := range []Component{Etcd, APIServer, ControllerManager, ProcessNode} {
		if h.PID(dir, component) == 0 {
			h.Ended = append(h.Ended, component)
		}
	}
	return h, nil
}
