// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/klusterlet"
	registration "github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// lifetime is one life of the loops that start an agent, in this process, so
// that it can be ended after an exact number of writes.
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
	l.registration = credential.New(credential.Options{
		Spoke: client, Namespace: operatorv1.NamespaceAgent, Secrets: list, Clock: clock.RealClock{}, UserAgent: "test",
		Serve: func(ctx context.Context, _ registration.Session) {
			once.Do(func() { close(l.serving) })
			<-ctx.Done()
		},
		OnReport: func() { operator.Wake() },
	})
	operator = klusterlet.New(klusterlet.Options{
		Spoke: client, Name: "klusterlet", Namespace: operatorv1.NamespaceAgent, Definitions: definitions, Version: "v0.1.0", UserAgent: "test",
		Secrets: list, Registration: l.registration, WorkProblem: func() string { return "" }, Accepted: func() bool { return false },
		Trouble: func() registration.Trouble { return registration.Trouble{} },
		Clock:   clock.RealClock{}, Log: logr.Discard(),
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

// reset makes the spoke as it is right after an installation, and the hub as if
// it had never heard of the cluster.
func reset(t *testing.T, h *hub, s *spoke, name string) {
	t.Helper()
	drop := metav1.DeleteOptions{}
	k := s.klusterlet(t)
	k.Finalizers, k.Status = nil, operatorv1.KlusterletStatus{}
	_, err := s.client.Resource(klusterlets).Update(t.Context(), object(t, k), metav1.UpdateOptions{})
	require.NoError(t, err)
	for _, secret := range []string{"hub-kubeconfig-secret", "hub-kubeconfig-pending"} {
		_ = s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Delete(t.Context(), secret, drop)
	}
	for _, u := range h.requestsOf(t, name) {
		require.NoError(t, h.client.Resource(requests).Delete(t.Context(), u.GetName(), drop))
	}
	_ = h.client.Resource(clusters).Delete(t.Context(), name, drop)
	for _, definition := range []string{"appliedmanifestworks.work.open-cluster-management.io", "clusterclaims.cluster.open-cluster-management.io"} {
		_ = s.client.Resource(definitions).Delete(t.Context(), definition, drop)
		require.Eventually(t, func() bool {
			_, err := s.client.Resource(definitions).Get(t.Context(), definition, metav1.GetOptions{})
			return err != nil
		}, wait, tick)
	}
}

// TestStartSurvivesAKillAfterEachWrite ends the loops after each write that they
// make on their own cluster from the installation to the valid access, starts
// them again, and finds one ManagedCluster, one request and one certificate.
func TestStartSurvivesAKillAfterEachWrite(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	const name = "startkill"
	s.install(t, config.Options{ClusterName: name, BootstrapKubeconfig: h.bootstrap(t)})
	cfg := s.As(t, operatorv1.NamespaceAgent, config.ServiceAccount)
	approver := func(stop <-chan struct{}) {
		for {
			for _, u := range h.requestsOf(t, name) {
				if _, decided := u.Object["status"].(map[string]any)["conditions"]; !decided {
					h.approve(t, u.GetName())
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(tick):
			}
		}
	}
	for writes := 0; ; writes++ {
		reset(t, h, s, name)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { defer close(stopped); approver(stop) }()
		client, c := crashing(t, cfg, writes)
		first := live(t, client)
		finished := false
		require.Eventually(t, func() bool {
			select {
			case <-first.serving:
				finished = s.secret(t.Context(), "hub-kubeconfig-pending") == nil
			default:
			}
			return finished || c.left.Load() < 0
		}, wait, tick, "after %d writes", writes)
		first.stop()

		whole, _ := crashing(t, cfg, 1<<30)
		second := live(t, whole)
		<-second.serving
		require.Eventually(t, func() bool {
			k := s.klusterlet(t)
			return s.secret(t.Context(), "hub-kubeconfig-pending") == nil && len(k.Finalizers) == 1 &&
				apimeta.IsStatusConditionTrue(k.Status.Conditions, operatorv1.ConditionApplied)
		}, wait, tick, "after %d writes", writes)
		second.stop()
		close(stop)
		<-stopped
		require.Len(t, h.requestsOf(t, name), 1, "after %d writes", writes)
		require.NotNil(t, h.cluster(t.Context(), name))
		checkKept(t, h, s, name, string(s.klusterlet(t).UID))
		if finished {
			t.Logf("%d writes", writes)
			return
		}
	}
}
