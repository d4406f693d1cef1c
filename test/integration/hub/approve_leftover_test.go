// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/approve"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// ahead is the machine's clock, set ahead by some time.
type ahead struct {
	clock.RealClock
	by time.Duration
}

func (c ahead) Now() time.Time { return c.RealClock.Now().Add(c.by) }

// approveLater runs the approval loop next to the hub's own, with the hub's token and a
// clock that is ahead.
func (s *scene) approveLater(t *testing.T, by time.Duration) {
	t.Helper()
	config := s.As(t, hub.Namespace, hub.Name)
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{certificatesv1.AddToScheme, corev1.AddToScheme, clusterv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	selector, err := labels.Parse(clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName)
	require.NoError(t, err)
	tokens, err := labels.Parse(clusterv1.LabelJoinToken)
	require.NoError(t, err)
	m, err := manager.New(manager.Options{Config: config, Scheme: scheme, Clock: clock.RealClock{}, Kinds: []manager.Kind{
		{Example: &certificatesv1.CertificateSigningRequest{}, Label: selector, Transform: approve.TrimRequest},
		{Example: &corev1.Secret{}, Namespace: hub.Namespace, Label: tokens, Transform: approve.TrimToken},
	}})
	require.NoError(t, err)
	dyn, err := dynamic.NewForConfig(rest.CopyConfig(config))
	require.NoError(t, err)
	arrivals := lease.NewArrivals(clock.RealClock{})
	m.AddTask(func(ctx context.Context) error { return arrivals.Run(ctx, config) })
	approve.Register(m, approve.Config{Client: dyn, Clock: ahead{by: by}, Arrivals: arrivals})
	done := make(chan error, 1)
	go func() { done <- m.Run(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
}

// TestOldRequestsAreClearedAway creates the leftover requests of agents that restart, are
// denied, or renew often, and checks them a quarter of an hour later.
func TestOldRequestsAreClearedAway(t *testing.T) {
	s := sharedHub(t)
	dyn, kube := s.bootstrap(t)
	for _, name := range []string{"leftover", "crowd"} {
		settled(t, func() error { return create(dyn, cluster(name)) })
	}
	denied, _ := agentRequest(t, kube, "leftover", "a")
	s.deny(t, denied.Name, "KubectlDeny", "no")
	abandoned, _ := agentRequest(t, kube, "leftover", "b")
	nextSecond(t, abandoned)
	waiting, _ := agentRequest(t, kube, "leftover", "b")
	foreign := forge(t, s.kube, "leftover", func(f *forgery) { f.template.DNSNames = []string{"x"} })
	var restarts []string
	for i := range 11 {
		csr, _ := agentRequest(t, kube, "crowd", fmt.Sprintf("x%d", i))
		restarts = append(restarts, csr.Name)
	}
	exists := func(name string) bool {
		list, err := s.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		require.NoError(t, err)
		return len(list.Items) > 0
	}
	s.await(t, "leftover", "reports the denial", conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, ""))
	require.True(t, exists(denied.Name), "a denial stays to be read")

	s.approveLater(t, 15*time.Minute)
	require.True(t, eventually(func() bool { return !exists(denied.Name) && !exists(abandoned.Name) }))
	require.True(t, eventually(func() bool {
		left := 0
		for _, name := range restarts {
			if exists(name) {
				left++
			}
		}
		return left < 8
	}), "agents ask while there are fewer than ten")
	require.True(t, exists(waiting.Name), "the last request of an agent stays")
	require.True(t, exists(foreign.Name), "other people's requests stay")
	require.NotNil(t, findCondition(s.get(t, "leftover"), clusterv1.ConditionCertificateRequestDenied), "the cluster still reports the denial")
}
