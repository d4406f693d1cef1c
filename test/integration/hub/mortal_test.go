// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// loops are control loops of the hub that a test runs without the process.
type loops struct {
	kinds    []func(*runtime.Scheme) error
	limits   []manager.Kind
	register func(*manager.Manager, dynamic.Interface)
}

// run runs the loops with the connection until it is dead, or done returns true once they
// have begun.
func (l loops) run(t *testing.T, config *rest.Config, dead <-chan struct{}, done func() bool) {
	t.Helper()
	dyn, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	for _, add := range l.kinds {
		require.NoError(t, add(scheme))
	}
	m, err := manager.New(manager.Options{Config: config, Scheme: scheme, Kinds: l.limits, Clock: clock.RealClock{}, Log: logr.Discard()})
	require.NoError(t, err)
	l.register(m, dyn)
	var begun atomic.Bool
	m.AddTask(func(ctx context.Context) error { begun.Store(true); <-ctx.Done(); return nil })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = m.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	deadline := time.After(patience)
	for !begun.Load() || !done() {
		select {
		case <-dead:
			return
		case <-deadline:
			t.Fatal("the loops neither died nor completed their work")
		case <-time.After(tick):
		}
	}
}

// rest starts the loops on a finished state, and again as long as a start writes: the
// first start, or a later one on a slow machine, makes the write that the last life was
// about to make. It returns the writes of the tenth start, without those that end with
// but.
func (l loops) rest(t *testing.T, config *rest.Config, but string) (writes []string) {
	t.Helper()
	for range 10 {
		counted, process := faults.Count(config)
		begun := sync.OnceValue(time.Now)
		l.run(t, counted, nil, func() bool { return time.Since(begun()) > 3*time.Second })
		writes = slices.DeleteFunc(process.Seen(), func(w string) bool { return but != "" && strings.HasSuffix(w, but) })
		if len(writes) == 0 {
			break
		}
	}
	return writes
}

// served returns a hub with its APIs and namespaces but without a process, and the
// configuration with which the process would reach it. Admission is off, because nothing
// serves it.
func served(t *testing.T, namespaces ...string) (*scene, *rest.Config) {
	t.Helper()
	s, config := processless(t)
	life(t, config, nil, func() bool { return s.complete(t) })
	s.withoutAdmission(t)
	for _, name := range namespaces {
		_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return s, config
}

// withoutAdmission removes the webhooks, which nothing serves.
func (s *scene) withoutAdmission(t *testing.T) {
	t.Helper()
	hooks := s.kube.AdmissionregistrationV1()
	require.NoError(t, hooks.MutatingWebhookConfigurations().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, hooks.ValidatingWebhookConfigurations().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}
