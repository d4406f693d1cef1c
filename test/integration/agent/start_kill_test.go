// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/klusterlet"
	registration "github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// lifetime is one run of the loops that start an agent, in this process, so that it can
// be ended after an exact number of writes.
type lifetime struct {
	registration *credential.Controller
	serving      chan struct{}
	stop         func()
}

func live(t *testing.T, client dynamic.Interface) *lifetime {
	t.Helper()
	definitions, err := crd.Agent()
	require.NoError(t, err)
	l := &lifetime{serving: make(chan struct{})}
	var operator *klusterlet.Controller
	var once sync.Once
	list := credential.NewSecrets(client, operatorv1.NamespaceAgent, logr.Discard())
	l.registration = credential.New(credential.Config{
		Management: client, Namespace: operatorv1.NamespaceAgent, Secrets: list, Clock: clock.RealClock{}, UserAgent: "test",
		Serve: func(ctx context.Context, _ registration.Session) {
			once.Do(func() { close(l.serving) })
			<-ctx.Done()
		},
		OnReport: func() { operator.Wake() },
	})
	operator = klusterlet.New(klusterlet.Config{
		Spoke: client, Name: "klusterlet", Namespace: operatorv1.NamespaceAgent, Definitions: definitions, Version: "v0.1.0", UserAgent: "test",
		Secrets:      list,
		Registration: l.registration,
		WorkProblem:  func() string { return "" },
		Hubs:         func() string { return "" },
		Others:       func() []string { return nil },
		Accepted:     func() bool { return false },
		Trouble:      func() registration.Trouble { return registration.Trouble{} },
		Clock:        clock.RealClock{}, Log: logr.Discard(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	start := func(run func(context.Context) error) { running.Go(func() { _ = run(ctx) }) }
	start(list.Run)
	start(l.registration.Run)
	start(operator.Run)
	for _, c := range operator.Collections() {
		start(c.Run)
	}
	l.stop = func() { cancel(); running.Wait() }
	t.Cleanup(l.stop)
	return l
}

// approveAll approves the requests of the cluster until ctx ends. Failures are retried at
// the next poll; the test notices a request that is never approved.
func (h *hub) approveAll(ctx context.Context, name string) {
	for ctx.Err() == nil {
		list, err := h.client.Resource(requests).List(ctx, metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName + "=" + name})
		for i := range itemsOf(list, err) {
			u := &list.Items[i]
			if _, decided, _ := unstructured.NestedSlice(u.Object, "status", "conditions"); decided {
				continue
			}
			approved := []any{map[string]any{"type": "Approved", "status": "True", "reason": "ByTheTest", "message": "welcome"}}
			if unstructured.SetNestedSlice(u.Object, approved, "status", "conditions") == nil {
				_, _ = h.client.Resource(requests).Update(ctx, u, metav1.UpdateOptions{}, "approval")
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(tick):
		}
	}
}

func itemsOf(list *unstructured.UnstructuredList, err error) []unstructured.Unstructured {
	if err != nil {
		return nil
	}
	return list.Items
}

// started reports whether the loops of a life have reached a session.
func (l *lifetime) started() bool {
	select {
	case <-l.serving:
		return true
	default:
		return false
	}
}

// TestStartSurvivesAKillAfterEachWrite ends the loops after each write that they make on
// the managed cluster between installation and valid credentials, starts them again, and
// expects one ManagedCluster, one request and one certificate. Each number of writes has
// a cluster of its own without a previous installation.
func TestStartSurvivesAKillAfterEachWrite(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	finished, writes := false, 0
	for ; !finished; writes++ {
		ok := t.Run(fmt.Sprintf("after %d writes", writes), func(t *testing.T) { finished = startOnce(t, h, writes) })
		if !ok {
			return
		}
	}
	require.Greater(t, writes, 10, "lives: a start makes more writes than that")
}

// startOnce takes a cluster through both lives, the first of which ends after this many
// writes. It returns true when the first life needed no more.
func startOnce(t *testing.T, h *hub, writes int) (finished bool) {
	t.Helper()
	name := fmt.Sprintf("startkill%d", writes)
	h.Claim(t, name)
	s := newSpoke(t)
	s.install(t, config.Options{ClusterName: name, BootstrapKubeconfig: h.bootstrap(t)})
	cfg := s.As(t, operatorv1.NamespaceAgent, config.ServiceAccount("klusterlet"))
	ctx, cancel := context.WithCancel(t.Context())
	var approver sync.WaitGroup
	approver.Go(func() { h.approveAll(ctx, name) })
	defer func() { cancel(); approver.Wait() }()

	client, process := mortal(t, cfg, writes)
	first := live(t, client)
	await(t, func() bool {
		finished = first.started() && s.secret(t.Context(), "hub-kubeconfig-pending") == nil
		return finished || process.Dead()
	}, "neither served nor ended")
	first.stop()

	whole, err := dynamic.NewForConfig(cfg)
	require.NoError(t, err)
	second := live(t, whole)
	await(t, second.started, "not served, %v", func() any { return second.registration.Report() })
	await(t, func() bool {
		k := s.klusterlet(t)
		return s.secret(t.Context(), "hub-kubeconfig-pending") == nil && len(k.Finalizers) == 1 &&
			apimeta.IsStatusConditionTrue(k.Status.Conditions, operatorv1.ConditionApplied)
	}, "not settled, %v", func() any { return second.registration.Report() })
	second.stop()
	require.Len(t, h.requestsOf(t, name), 1)
	require.NotNil(t, h.cluster(t.Context(), name))
	checkKept(t, h, s, name, string(s.klusterlet(t).UID))
	return finished
}
