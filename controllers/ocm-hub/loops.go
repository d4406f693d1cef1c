// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// restartDelay is the pause before loops that failed are restarted.
const restartDelay = 2 * time.Second

// loops runs all control loops, with one set of features at a time.
type loops struct {
	processConfig
	client dynamic.Interface
	// parts are those whose loops run.
	parts []part
	// placements records how long placement decisions take.
	placements *placement.Metrics

	// cancel is nil while the loops do not run. It and running are for Run and Stop, which are
	// called one at a time.
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	onChange func()
	state    state
}

// state is what others see of the loops.
type state struct {
	// features are those that the loops run with.
	features clustermanager.Features
	err      error
	// reader and arrivals are nil while the loops do not work.
	reader   manager.Reader
	arrivals *lease.Arrivals
	// away is how long no hub was running, for the loops that are started next.
	away time.Duration
}

var _ clustermanager.Loops = (*loops)(nil)

var errStopped = errors.New("they are not started yet")

var bindings = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")

var errFilling = errors.New("their caches are being filled")

// OnChange implements clustermanager.Loops.
func (l *loops) OnChange(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onChange = f
}

// Err implements clustermanager.Loops.
func (l *loops) Err() error { return l.current().err }

// broken returns what keeps the loops from working in a replica that leads; nil in others.
func (l *loops) broken() error {
	if err := l.Err(); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

func (l *loops) current() state {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// update changes the state and reports that.
func (l *loops) update(change func(*state)) {
	l.mu.Lock()
	change(&l.state)
	f := l.onChange
	l.mu.Unlock()
	if f != nil {
		f()
	}
}

// Run implements clustermanager.Loops.
func (l *loops) Run(f clustermanager.Features) {
	if l.cancel != nil && l.current().features.Equal(f) {
		return
	}
	l.Stop()
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), l.Log))
	l.cancel = cancel
	l.update(func(s *state) { s.features, s.err = f, errFilling })
	l.running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := l.runOnce(ctx, f); err != nil && ctx.Err() == nil {
				l.Log.Error(err, "Controllers failed and will be restarted")
				l.update(func(s *state) { s.err = err })
			}
		}, restartDelay)
	})
}

// Stop implements clustermanager.Loops.
func (l *loops) Stop() {
	if l.cancel == nil {
		return
	}
	l.cancel()
	l.cancel = nil
	l.running.Wait()
	l.update(func(s *state) { s.reader, s.arrivals, s.err = nil, nil, errStopped })
}

// runOnce runs the loops until ctx is done or they fail.
func (l *loops) runOnce(ctx context.Context, f clustermanager.Features) error {
	arrivals := lease.NewArrivals(l.Clock)
	arrivals.SetAway(l.current().away)
	addOnManager := l.client
	if len(l.parts) > 1 { // on its own, that part is the add-on manager
		as := rest.CopyConfig(l.REST)
		as.Impersonate = rest.ImpersonationConfig{UserName: hub.AddOnManagerUser}
		var err error
		if addOnManager, err = dynamic.NewForConfig(as); err != nil {
			return fmt.Errorf("creating the client of the add-on manager: %w", err)
		}
	}
	shown := f.ClusterProfile && slices.Contains(l.parts, partRegistration)
	m, err := manager.New(manager.Options{Config: l.REST, Scheme: scheme(), Kinds: kinds(shown), Clock: l.Clock, Steady: l.Steady, Log: l.Log})
	if err != nil {
		return err
	}
	l.register(m, f, arrivals, addOnManager) //nolint:contextcheck // caches are read without waiting
	m.AddTask(func(ctx context.Context) error {
		l.update(func(s *state) { s.reader, s.arrivals, s.away, s.err = m.Reader(), arrivals, 0, nil })
		<-ctx.Done()
		return nil
	})
	l.Log.Info("Controllers start", "loops", m.Loops())
	return m.Run(ctx)
}

// caches returns the caches of the loops; nil while the loops do not work.
func (l *loops) caches() manager.Reader { return l.current().reader }

// bound returns the sets that a namespace is bound to: from the caches, or from the API
// server if the loops do not work in this replica or if live is true.
func (l *loops) bound(ctx context.Context, namespace string, live bool) ([]string, error) {
	var list clusterv1beta2.ManagedClusterSetBindingList
	var err error
	if reader := l.caches(); reader != nil && !live {
		err = reader.List(ctx, &list, manager.InNamespace(namespace), manager.NotCopied)
	} else {
		list.Items, err = typed.List[clusterv1beta2.ManagedClusterSetBinding](ctx, l.client, bindings, namespace, metav1.ListOptions{})
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out, nil
}
