// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// patience bounds how long a cluster may take to answer.
const patience = 3 * time.Second

// State is the state of one cluster of a lab.
type State struct {
	Lab     string `json:"playground"`
	Cluster string `json:"cluster"`
	Context string `json:"context"`
	// PID and Port are those of kube-apiserver.
	PID  int `json:"pid,omitempty"`
	Port int `json:"port,omitempty"`
	// Ready tells whether all of it works; if not, Reason is why.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Resident is the memory of all processes of the cluster, in bytes.
	Resident int64 `json:"rss"`
}

// Status returns the state of each cluster of a lab. It takes no lock, so that it also
// tells how far a running command is.
func Status(ctx context.Context, root, name string) ([]State, error) {
	l := &lab{name: name, dir: filepath.Join(root, name)}
	if err := l.read(); err != nil {
		return nil, err
	}
	if !l.known {
		return nil, ErrNone
	}
	states := make([]State, len(l.clusters()))
	var group errgroup.Group
	for i, cluster := range l.clusters() {
		group.Go(func() error {
			var err error
			states[i], err = l.state(ctx, cluster)
			return err
		})
	}
	return states, group.Wait()
}

func (l *lab) state(ctx context.Context, cluster string) (State, error) {
	s := State{Lab: l.name, Cluster: cluster, Context: Context(l.name, cluster)}
	health, err := playground.Inspect(l.folder(cluster))
	if err != nil {
		return s, err
	}
	s.Port, s.PID = health.Port, health.PID(l.folder(cluster), playground.APIServer)
	for _, p := range health.Running {
		if used, err := memory.Of(p.PID); err == nil {
			s.Resident += used.Resident
		}
	}
	var ended []string
	for _, component := range health.Ended {
		ended = append(ended, string(component))
	}
	if len(ended) > 0 {
		s.Reason = strings.Join(ended, ", ") + " not running"
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := l.works(ctx, cluster); err != nil {
		s.Reason = fleet.OneLine(err.Error())
		return s, nil
	}
	s.Ready = true
	return s, nil
}

// works returns what keeps the hub, or the agent of a cluster, from working.
func (l *lab) works(ctx context.Context, cluster string) error {
	c, err := l.connect(Hub)
	if err != nil {
		return err
	}
	if cluster == Hub {
		deployment, err := hub.Deployment(ctx, c)
		if err == nil && (deployment == nil || deployment.Status.AvailableReplicas == 0) {
			err = errors.New("the hub's process is not available")
		}
		return err
	}
	mc, err := c.Client.Resource(clusterv1.GroupVersion.WithResource("managedclusters")).Get(ctx, cluster, metav1.GetOptions{})
	if err == nil && !fleet.ConditionTrue(mc, clusterv1.ConditionAvailable) {
		err = errors.New("the hub does not see it as available")
	}
	return err
}
