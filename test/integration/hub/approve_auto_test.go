// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// autoApprove enables the gate for the users in a field of registrationConfiguration, and
// waits until it takes effect.
func (s *scene) autoApprove(t testing.TB, field string) {
	t.Helper()
	changed, err := s.dyn.Resource(managers).Patch(context.Background(), hub.Name, types.MergePatchType, []byte(`{"spec":{"registrationConfiguration":{`+field+
		`,"featureGates":[{"feature":"ManagedClusterAutoApproval","mode":"Enable"}]}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.True(t, eventually(func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](context.Background(), s.dyn, managers, "", hub.Name)
		return err == nil && cm.Status.ObservedGeneration >= changed.GetGeneration()
	}))
	s.awaitHub(t)
}

const bootstrapUser = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"

// joins registers a cluster and waits until it is approved automatically.
func (s *scene) joins(t testing.TB, h holder, name, agentName string) *agent {
	t.Helper()
	settled(t, func() error { return create(h.dyn, cluster(name)) })
	csr, key := agentRequest(t, h.kube, name, agentName)
	a := &agent{}
	a.dyn, a.kube = s.issued(t, csr.Name, key)
	kind, reason := s.verdict(t, csr.Name)
	require.Equal(t, "Approved", kind)
	require.Equal(t, clusterv1.ReasonAutoApproved, reason)
	return a
}

// TestApprovalWithoutAPerson runs every case of the gate on one hub.
func TestApprovalWithoutAPerson(t *testing.T) {
	t.Parallel()
	s := ownHub(t)
	// The users of the csr driver replace the older field completely.
	s.autoApprove(t, `"autoApproveUsers":["nobody"],"registrationDrivers":[{"authType":"csr","csr":{"autoApprovedIdentities":["`+bootstrapUser+`"]}}]`)
	any := s.joinToken(t, "", false)

	t.Run("a listed user joins, and a later denial stays", func(t *testing.T) {
		s.joins(t, any, "auto", "a")
		mc := s.await(t, "auto", "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
		require.NotEmpty(t, mc.Annotations[clusterv1.AnnotationAutomaticallyAcceptedOn])
		s.accept(t, "auto", false)
		s.await(t, "auto", "is denied", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied))
		s.joins(t, any, "auto-after", "a")
		require.False(t, s.get(t, "auto").Spec.HubAcceptsClient)
	})
	t.Run("a creator that is not listed is left to a person", func(t *testing.T) {
		require.NoError(t, create(s.dyn, cluster("byhand")))
		// The request of a listed user gets its certificate; acceptance is separate.
		csr, key := agentRequest(t, any.kube, "byhand", "a")
		s.issued(t, csr.Name, key)
		require.False(t, s.get(t, "byhand").Spec.HubAcceptsClient)
	})
	t.Run("who pretends to be the creator is not", func(t *testing.T) {
		mc := cluster("pretend")
		mc.Annotations = map[string]string{clusterv1.AnnotationCreator: bootstrapUser}
		require.NoError(t, create(s.dyn, mc))
		s.joins(t, any, "pretend-after", "a")
		require.False(t, s.get(t, "pretend").Spec.HubAcceptsClient)
		require.NotEqual(t, bootstrapUser, s.get(t, "pretend").Annotations[clusterv1.AnnotationCreator])
	})
	t.Run("an accepted cluster only gets the note, and a denial stays", func(t *testing.T) {
		// Accepted in the same second: whichever is first, there is one note.
		settled(t, func() error { return create(any.dyn, cluster("noted")) })
		s.accept(t, "noted", true)
		s.await(t, "noted", "has the note", func(mc *clusterv1.ManagedCluster) bool {
			return mc.Annotations[clusterv1.AnnotationAutomaticallyAcceptedOn] != ""
		})
	})
	t.Run("a token of another cluster is not enough", func(t *testing.T) {
		bound := s.joinToken(t, "mine", false)
		settled(t, func() error { return create(any.dyn, cluster("yours")) })
		csr, _ := agentRequest(t, bound.kube, "yours", "a")
		require.Equal(t, clusterv1.ReasonTokenForAnotherCluster, s.denial(t, csr.Name).Reason)
		s.joins(t, bound, "mine", "a")
	})
	t.Run("nor is one that was revoked", func(t *testing.T) {
		token := s.joinToken(t, "", false)
		// The request waits for its ManagedCluster, and is not forgotten in the meantime.
		csr, _ := agentRequest(t, token.kube, "late", "a")
		require.NoError(t, s.kube.CoreV1().Secrets(hub.Namespace).Delete(t.Context(), "join-token-"+token.id, metav1.DeleteOptions{}))
		require.Equal(t, clusterv1.ReasonTokenRevoked, s.denial(t, csr.Name).Reason)
		settled(t, func() error { return create(any.dyn, cluster("late")) })
		s.await(t, "late", "reports the denial", conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, clusterv1.ReasonRequestDenied))
	})
	t.Run("nor is one that another cluster used up", s.testRace)
	t.Run("a token that other tools made is as good", func(t *testing.T) {
		dyn, kube := s.bootstrap(t)
		settled(t, func() error { return create(dyn, cluster("plain")) })
		csr, key := agentRequest(t, kube, "plain", "a")
		s.issued(t, csr.Name, key)
	})
	t.Run("a joined name is not given away", func(t *testing.T) { s.testTakeover(t, any) })
	t.Run("the older field counts where the driver names nobody", func(t *testing.T) {
		s.autoApprove(t, `"registrationDrivers":null,"autoApproveUsers":["`+bootstrapUser+`"]`)
		s.joins(t, any, "older", "a")
	})
	t.Run("nobody is listed any more", func(t *testing.T) {
		s.autoApprove(t, `"autoApproveUsers":["nobody"]`)
		settled(t, func() error { return create(any.dyn, cluster("closed")) })
		csr, _ := agentRequest(t, any.kube, "closed", "a")
		a := s.register(t, "closed-after", "a")
		s.settle(t, a, "closed-after")
		kind, _ := s.verdict(t, csr.Name)
		require.Empty(t, kind)
		require.False(t, s.get(t, "closed").Spec.HubAcceptsClient)
	})
}

// testTakeover uses an automatically approved token to request the names of clusters that
// have joined (clusteradm#361).
func (s *scene) testTakeover(t *testing.T, thief holder) {
	a := s.joins(t, thief, "held", "a")
	s.await(t, "held", "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
	settled(t, func() error {
		_, err := a.kube.CoordinationV1().Leases("held").Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		return err
	})
	s.joined(t, a, "held")
	other, _ := agentRequest(t, thief.kube, "held", "b")
	s.await(t, "held", "reports the rival", conditionIs(clusterv1.ConditionDuplicateClusterName, metav1.ConditionTrue, ""))
	// The agent's name is no secret.
	same, _ := agentRequest(t, thief.kube, "held", "a")
	s.settle(t, a, "held")
	for _, csr := range []string{other.Name, same.Name} {
		kind, _ := s.verdict(t, csr)
		require.Empty(t, kind, "while its agent lives")
	}
	require.NoError(t, s.kube.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), other.Name, metav1.DeleteOptions{}))
	require.NoError(t, s.kube.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), same.Name, metav1.DeleteOptions{}))

	require.NoError(t, patch(s.dyn, "held", `{"spec":{"leaseDurationSeconds":1}}`))
	s.await(t, "held", "is away", conditionIs(clusterv1.ConditionAvailable, metav1.ConditionUnknown, ""))
	for _, name := range []string{"a", "b"} {
		csr, _ := agentRequest(t, thief.kube, "held", name)
		s.settle(t, a, "held")
		kind, _ := s.verdict(t, csr.Name)
		require.Empty(t, kind, "agent %s, while the cluster is away and its certificate is good", name)
	}
	// Once the certificate has expired, only its holder gets a new one.
	require.NoError(t, s.kube.CertificatesV1().CertificateSigningRequests().DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName + "=held"}))
	// A request that arrives while the certificate is valid is answered when it has
	// expired, without any further event.
	a.renew(t, "held", 0)
	a.report(t, "held", metav1.ConditionTrue)
	settled(t, func() error {
		return patch(s.dyn, "held", `{"metadata":{"annotations":{"`+clusterv1.AnnotationCertificateExpires+`":"`+time.Now().UTC().Format(time.RFC3339)+`"}}}`)
	})
	back, key := agentRequest(t, thief.kube, "held", "a")
	s.issued(t, back.Name, key)
	stranger, _ := agentRequest(t, thief.kube, "held", "b")
	s.joins(t, thief, "held-after", "a")
	kind, _ := s.verdict(t, stranger.Name)
	require.Empty(t, kind)
}

// TestAHostileHolderOfAToken does what an attacker with a stolen join token would.
func TestAHostileHolderOfAToken(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "prey", "a")
	settled(t, func() error {
		_, err := a.kube.CoordinationV1().Leases("prey").Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		return err
	})
	a.renew(t, "prey", 0)
	a.report(t, "prey", metav1.ConditionTrue)
	thief := s.joinToken(t, "own", false)
	csrs := thief.kube.CertificatesV1().CertificateSigningRequests()
	forbidden := func(err error, what string) {
		t.Helper()
		require.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
	}

	csr, _ := agentRequest(t, thief.kube, "prey", "a")
	require.Equal(t, clusterv1.ReasonTokenForAnotherCluster, s.denial(t, csr.Name).Reason, "it asks for the identity of another cluster")

	live, err := csrs.Get(t.Context(), csr.Name, metav1.GetOptions{})
	require.NoError(t, err)
	_, err = csrs.UpdateApproval(t.Context(), live.Name, live, metav1.UpdateOptions{})
	forbidden(err, "it approves its own request")
	forbidden(csrs.Delete(t.Context(), live.Name, metav1.DeleteOptions{}), "it deletes the denial")

	_, err = thief.kube.CoreV1().Secrets(hub.Namespace).List(t.Context(), metav1.ListOptions{})
	forbidden(err, "it reads the tokens")
	forbidden(thief.kube.CoreV1().Secrets(hub.Namespace).Delete(t.Context(), "join-token-"+thief.id, metav1.DeleteOptions{}), "it deletes its token's secret")
	_, err = thief.kube.CoreV1().Secrets("prey").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	forbidden(err, "it writes into the namespace of another cluster")

	mc := cluster("own")
	mc.Spec.HubAcceptsClient = true
	require.True(t, apierrors.IsForbidden(create(thief.dyn, mc)), "it accepts itself")
	err = create(thief.dyn, cluster("own2"))
	forbidden(err, "it makes another cluster")
	require.ErrorContains(t, err, "join token "+thief.id+" is for cluster own only")
	boot := s.joinToken(t, "own", true)
	err = create(boot.dyn, cluster("own2"))
	forbidden(err, "it makes another cluster with a bootstrap token")
	require.ErrorContains(t, err, "is for cluster own only")
	forbidden(patch(thief.dyn, "prey", `{"spec":{"hubAcceptsClient":false}}`), "it denies another cluster")

	// It tries to hide the request from the loop and to show it later, but may not change
	// labels.
	hidden := forge(t, thief.kube, "prey", func(f *forgery) { f.csr.Labels = nil })
	hidden.Labels = map[string]string{clusterv1.LabelClusterName: "prey"}
	_, err = csrs.Update(t.Context(), hidden, metav1.UpdateOptions{})
	forbidden(err, "it changes a request")
	s.settle(t, a, "prey")
	kind, _ := s.verdict(t, hidden.Name)
	require.Empty(t, kind)
	require.Nil(t, findCondition(s.get(t, "prey"), clusterv1.ConditionCertificateRequestDenied), "the cluster that is well is not slandered")
}
