// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestRequestsForClustersThatDoNotExistAreBounded(t *testing.T) {
	var found []Request
	add := func(name string, age time.Duration, change func(*Request)) {
		csr := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
		}
		csr.Spec.Username = identity.BootstrapUser
		r := Request{CSR: csr, Agent: identity.Agent{Cluster: name, Name: "a"}}
		change(&r)
		found = append(found, r)
	}
	for i := range maxStrays {
		add(fmt.Sprintf("n%03d", i), time.Duration(i)*time.Minute, func(*Request) {})
	}
	require.Empty(t, surplusOf(found), "exactly as many as are kept")
	add(
		"foreign", 1000*time.Hour,
		func(r *Request) { r.Fault, r.CSR.Spec.Username = identity.ErrNoAgentRequest, "ann" },
	)
	add("approved", 1000*time.Hour, func(r *Request) {
		r.CSR.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved},
		}
	})
	add("going", 1000*time.Hour, func(r *Request) { r.CSR.DeletionTimestamp = &metav1.Time{Time: now} })
	require.Empty(t, surplusOf(found), "requests that are not counted")
	add("denied", 999*time.Hour, func(r *Request) {
		r.CSR.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateDenied},
		}
	})
	add("garbage", 998*time.Hour, func(r *Request) { r.Fault = identity.ErrNoAgentRequest })
	add("new", 0, func(*Request) {})
	var names []string
	for _, csr := range surplusOf(found) {
		names = append(names, csr.Name)
	}
	require.Equal(t, []string{"denied", "garbage", "n499"}, names, "the oldest first")
}

// TestOpenRequestsAreCountedOverAllClusters: in a fleet that registers, most are approved, and none of
// these can be a stray.
func TestOpenRequestsAreCountedOverAllClusters(t *testing.T) {
	q := newRequests()
	csr := func(cluster, uid string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{
				UID:    types.UID(uid),
				Labels: map[string]string{clusterv1.LabelClusterName: cluster},
			},
		}
	}
	one, two, moved := csr("c1", "1"), csr("c2", "2"), csr("c3", "2")
	q.Observe(nil, one)
	q.Observe(nil, one)
	q.Observe(nil, two)
	require.Equal(t, 2, q.Open())
	q.Observe(two, moved)
	require.Equal(t, 2, q.Open())
	require.ElementsMatch(t, []string{"c1", "c3"}, q.Clusters())
	q.Observe(moved, nil)
	q.Observe(moved, nil)
	require.Equal(t, 1, q.Open())
	require.Equal(t, []string{"c1"}, q.Clusters())
	approved := csr("c1", "1")
	approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	q.Observe(one, approved)
	q.Observe(nil, approved)
	require.Zero(t, q.Open())
	require.Empty(t, q.Clusters())
	q.Observe(approved, nil)
	q.Observe(nil, one)
	require.Equal(t, 1, q.Open())
}

// A request of a listed user is held while the certificate of its cluster's agent is valid;
// its expiry triggers no event.
func TestAHeldRequestIsLookedAtWhenTheCertificateEnds(t *testing.T) {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Annotations: map[string]string{
		clusterv1.AnnotationAgentName:          "a",
		clusterv1.AnnotationCertificateExpires: now.Add(time.Hour).Format(time.RFC3339),
	}}}
	mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionJoined, Status: "False"}}
	state := func(r Request) State {
		return State{Cluster: mc, Requests: []Request{r}, AutoApprove: []string{"bootstrap"}, Now: now}
	}
	require.Equal(t, time.Hour, Decide(state(open("a", false))).RequeueAfter)
	require.Zero(t, Decide(state(open("b", false))).RequeueAfter, "another agent's request is left to a user")
	unlisted := state(open("a", false))
	unlisted.AutoApprove = nil
	require.Zero(t, Decide(unlisted).RequeueAfter)
}

func TestAnAgentThatComesOrGoesWakesTheLoop(t *testing.T) {
	with := func(kind string, status metav1.ConditionStatus) *clusterv1.ManagedCluster {
		mc := &clusterv1.ManagedCluster{}
		mc.Status.Conditions = []metav1.Condition{{Type: kind, Status: status}}
		return mc
	}
	for _, kind := range []string{clusterv1.ConditionAvailable, clusterv1.ConditionJoined} {
		require.NotEqual(t, agentConditions(with(kind, "True")), agentConditions(with(kind, "Unknown")))
	}
	require.Equal(
		t, agentConditions(with(clusterv1.ConditionClockSynced, "True")),
		agentConditions(with(clusterv1.ConditionClockSynced, "False")),
	)
}
