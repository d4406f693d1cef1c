// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
)

// holder is a client with a join token.
type holder struct {
	id   string
	dyn  dynamic.Interface
	kube kubernetes.Interface
}

// joinToken creates a token as the plugin does, for one cluster or for any.
func (s *scene) joinToken(t testing.TB, name string, bootstrap bool) holder {
	t.Helper()
	return s.tokenOf(t, token.Options{Cluster: name, Bootstrap: bootstrap})
}

func (s *scene) tokenOf(t testing.TB, o token.Options) holder {
	t.Helper()
	c, err := fleet.Connect(s.Config, "hub")
	require.NoError(t, err)
	o.Hub = c
	made, err := token.Create(t.Context(), o)
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken, config.QPS = made.Token, -1
	h := holder{id: made.ID}
	h.dyn, h.kube = clients(t, config)
	return h
}

// denial waits until a request is answered, and returns its denial.
func (s *scene) denial(t testing.TB, name string) certificatesv1.CertificateSigningRequestCondition {
	t.Helper()
	var out certificatesv1.CertificateSigningRequestCondition
	require.True(t, eventually(func() bool {
		csr, err := s.kube.CertificatesV1().CertificateSigningRequests().Get(context.Background(), name, metav1.GetOptions{})
		if err != nil || len(csr.Status.Conditions) == 0 {
			return false
		}
		out = csr.Status.Conditions[0]
		return true
	}), "%s was not answered", name)
	require.EqualValues(t, "Denied", out.Type, out.Message)
	return out
}

// settle waits until the hub has answered a later request: what is not answered by then
// waits for an administrator.
func (s *scene) settle(t testing.TB, a *agent, name string) {
	t.Helper()
	csr, key := agentRequest(t, a.kube, name, "a")
	s.issued(t, csr.Name, key)
}

func TestATokenIsForItsClusterOnly(t *testing.T) {
	s := sharedHub(t)
	for _, kind := range []struct {
		prefix    string
		bootstrap bool
		says      string
	}{{"tok", false, "join token"}, {"boot", true, "for cluster boot10 only"}} {
		one, ten := s.joinToken(t, kind.prefix+"1", kind.bootstrap), s.joinToken(t, kind.prefix+"10", kind.bootstrap)
		dyn, _ := s.bootstrap(t)
		settled(t, func() error { return create(dyn, cluster(kind.prefix+"1")) })

		// The token for a longer name, and the one for the shorter name; the reverse
		// needs no ManagedCluster.
		stolen, _ := agentRequest(t, ten.kube, kind.prefix+"1", "a")
		reverse, _ := agentRequest(t, one.kube, kind.prefix+"10", "a")
		for _, csr := range []string{stolen.Name, reverse.Name} {
			c := s.denial(t, csr)
			require.Equal(t, clusterv1.ReasonTokenForAnotherCluster, c.Reason)
			require.Contains(t, c.Message, "kubectl ocm hub token create --cluster")
		}
		require.Contains(t, s.denial(t, stolen.Name).Message, kind.says)
		mc := s.await(
			t, kind.prefix+"1", "reports the denial",
			conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, clusterv1.ReasonRequestDenied),
		)
		require.Contains(t, findCondition(mc, clusterv1.ConditionCertificateRequestDenied).Message, stolen.Name)

		// The request with the right token waits for an administrator, and gets its
		// certificate once approved.
		own, key := agentRequest(t, one.kube, kind.prefix+"1", "a")
		s.approve(t, own.Name)
		s.issued(t, own.Name, key)
		s.await(
			t, kind.prefix+"1", "reports that it is over",
			conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionFalse, clusterv1.ReasonRequestIssued),
		)
	}
}

// TestATokenOfOneUseLetsOneClusterIn has two requests with one token wait for an
// administrator, who approves one.
func TestATokenOfOneUseLetsOneClusterIn(t *testing.T) {
	s := sharedHub(t)
	token := s.tokenOf(t, token.Options{Uses: 1})
	for _, name := range []string{"use-1", "use-10"} {
		settled(t, func() error { return create(token.dyn, cluster(name)) })
	}
	first, key := agentRequest(t, token.kube, "use-1", "a")
	second, _ := agentRequest(t, token.kube, "use-10", "a")
	s.approve(t, first.Name)
	s.issued(t, first.Name, key)
	c := s.denial(t, second.Name)
	require.Equal(t, clusterv1.ReasonTokenUsedUp, c.Reason)
	require.Contains(t, c.Message, "kubectl ocm hub token create --cluster use-10")
	mc := s.await(
		t, "use-10", "reports the denial",
		conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, clusterv1.ReasonRequestDenied),
	)
	require.Contains(t, findCondition(mc, clusterv1.ConditionCertificateRequestDenied).Message, "which is for 1 cluster")

	// Once the request is gone, only the note records the use; the cluster with the note
	// sends another request, which waits for an administrator.
	s.await(t, "use-1", "has the note", func(mc *clusterv1.ManagedCluster) bool {
		return mc.Annotations[clusterv1.AnnotationJoinedBy] == token.id
	})
	require.NoError(t, s.kube.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
	again, key := agentRequest(t, token.kube, "use-1", "a")
	third, _ := agentRequest(t, token.kube, "use-10", "b")
	require.Equal(t, clusterv1.ReasonTokenUsedUp, s.denial(t, third.Name).Reason)
	s.approve(t, again.Name)
	s.issued(t, again.Name, key)
}

// testRace has automatically approved clusters use a single-use token at the same time.
func (s *scene) testRace(t *testing.T) {
	token := s.tokenOf(t, token.Options{Uses: 1})
	const racers = 6
	names := make([]string, racers)
	for i := range names {
		names[i] = fmt.Sprintf("race-%d", i)
		settled(t, func() error { return create(token.dyn, cluster(names[i])) })
	}
	sent := make([]string, racers)
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			csr, _ := agentRequest(t, token.kube, name, "a")
			sent[i] = csr.Name
		})
	}
	all.Wait()
	answers := map[string]int{}
	for _, csr := range sent {
		require.True(t, eventually(func() bool { kind, _ := s.verdict(t, csr); return kind != "" }), "%s was not answered", csr)
		kind, reason := s.verdict(t, csr)
		answers[kind+" "+reason]++
	}
	require.Equal(t, map[string]int{"Approved " + clusterv1.ReasonAutoApproved: 1, "Denied " + clusterv1.ReasonTokenUsedUp: racers - 1}, answers)
}

func TestARevokedTokenTakesItsOpenRequestsWithIt(t *testing.T) {
	s := sharedHub(t)
	token, other := s.joinToken(t, "", false), s.joinToken(t, "", false)
	settled(t, func() error { return create(token.dyn, cluster("revoked")) })
	csr, _ := agentRequest(t, token.kube, "revoked", "a")
	staying, _ := agentRequest(t, other.kube, "revoked", "b")
	// The Secret is deleted with kubectl, because the plugin denies the requests itself.
	require.NoError(t, s.kube.CoreV1().Secrets(hub.Namespace).Delete(t.Context(), "join-token-"+token.id, metav1.DeleteOptions{}))
	c := s.denial(t, csr.Name)
	require.Equal(t, clusterv1.ReasonTokenRevoked, c.Reason)
	require.Contains(t, c.Message, token.id)
	s.await(t, "revoked", "reports the denial", conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, clusterv1.ReasonRequestDenied))
	kind, _ := s.verdict(t, staying.Name)
	require.Empty(t, kind, "another token goes on")
}

func TestARequestAfterTheEndOfItsTokenIsDenied(t *testing.T) {
	s := sharedHub(t)
	token := s.joinToken(t, "", false)
	settled(t, func() error { return create(token.dyn, cluster("expired")) })
	early, _ := agentRequest(t, token.kube, "expired", "a")
	// An administrator shortens its life.
	secrets := s.kube.CoreV1().Secrets(hub.Namespace)
	settled(t, func() error {
		secret, err := secrets.Get(t.Context(), "join-token-"+token.id, metav1.GetOptions{})
		if err != nil {
			return err
		}
		secret.Data[clusterv1.JoinTokenKeyExpiration] = []byte(early.CreationTimestamp.UTC().Format(time.RFC3339))
		_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		return err
	})
	nextSecond(t, early)
	late, _ := agentRequest(t, token.kube, "expired", "b")
	require.Equal(t, clusterv1.ReasonTokenExpired, s.denial(t, late.Name).Reason)
	kind, _ := s.verdict(t, early.Name)
	require.Empty(t, kind, "what was sent in time waits for a person")
}

func TestThePersonWhoIsFirstHasTheWord(t *testing.T) {
	s := sharedHub(t)
	token := s.joinToken(t, "", false)
	settled(t, func() error { return create(token.dyn, cluster("firstword")) })
	csr, key := agentRequest(t, token.kube, "firstword", "a")
	s.approve(t, csr.Name)
	s.issued(t, csr.Name, key)
	require.NoError(t, s.kube.CoreV1().Secrets(hub.Namespace).Delete(t.Context(), "join-token-"+token.id, metav1.DeleteOptions{}))
	s.register(t, "firstword-after", "a")
	kind, reason := s.verdict(t, csr.Name)
	require.Equal(t, "Approved", kind)
	require.Equal(t, "Test", reason)
	require.Nil(t, findCondition(s.get(t, "firstword"), clusterv1.ConditionCertificateRequestDenied))
}
