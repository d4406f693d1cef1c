// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

func TestWhetherAClusterNeedsACertificate(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	noted := func(life time.Duration) *clusterv1.ManagedCluster {
		mc := &clusterv1.ManagedCluster{}
		mc.Annotations = map[string]string{
			clusterv1.AnnotationAgentName: "a1", clusterv1.AnnotationCertificateExpires: now.Add(life).Format(time.RFC3339)}
		return mc
	}
	joined := &clusterv1.ManagedCluster{Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
		{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue}}}}
	for name, tc := range map[string]struct {
		mc             *clusterv1.ManagedCluster
		State, enabled bool
	}{
		"it never had one": {&clusterv1.ManagedCluster{}, false, false},
		"it has one, though it is denied and no longer joined": {noted(time.Hour), true, true},
		"it had one, which expired":                            {noted(-time.Hour), true, false},
		"it joined a hub that noted nothing":                   {joined, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.State, cluster.EverJoined(tc.mc))
			require.Equal(t, tc.enabled, cluster.Certified(tc.mc, now))
		})
	}
}

// The holder of a join token can ask for the name of a cluster that is only away; accepting
// all pending clusters must not hand the name over.
func TestAllPendingDoesNotHandOverAClusterThatHasJoined(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	joined := func(life time.Duration) *clusterv1.ManagedCluster {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod1"}}
		mc.Annotations = map[string]string{
			clusterv1.AnnotationAgentName: "a1", clusterv1.AnnotationCertificateExpires: now.Add(life).Format(time.RFC3339)}
		return mc
	}
	unnoted := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod1"}}
	unnoted.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue}}
	same, other := clusterv1.UserPrefix+"prod1:a1", clusterv1.UserPrefix+"prod1:a2"
	for name, tc := range map[string]struct {
		mc        *clusterv1.ManagedCluster
		requester string
		identity  string
		options   Options
		Refuse    bool
	}{
		"a cluster that is new": {
			&clusterv1.ManagedCluster{},
			same,
			"bootstrap SA",
			Options{AllPending: true},
			false,
		},
		"another agent":                       {joined(time.Hour), other, "bootstrap SA", Options{AllPending: true}, true},
		"another agent by a token":            {joined(time.Hour), other, "bootstrap token", Options{AllPending: true}, true},
		"another agent after the certificate": {joined(-time.Hour), other, "bootstrap SA", Options{AllPending: true}, true},
		"the same agent too early":            {joined(time.Hour), same, "bootstrap SA", Options{AllPending: true}, true},
		"the same agent after its end":        {joined(-time.Hour), same, "bootstrap SA", Options{AllPending: true}, false},
		"the agent itself":                    {joined(time.Hour), same, "renewal", Options{AllPending: true}, false},
		"a hub that noted nothing":            {unnoted, same, "bootstrap SA", Options{AllPending: true}, true},
		"named by a person": {
			joined(time.Hour),
			other,
			"bootstrap SA",
			Options{Clusters: []string{"prod1"}},
			false,
		},
		"named beside all others": {
			joined(time.Hour),
			other,
			"bootstrap SA",
			Options{AllPending: true, Clusters: []string{"prod1"}},
			false,
		},
		"vouched for": {
			joined(time.Hour),
			other,
			"bootstrap SA",
			Options{AllPending: true, Requesters: []string{other}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Hub = &fleet.Cluster{Context: "hub"}
			q := request.Request{Cluster: "prod1", State: request.StatePending, Requester: tc.requester, Identity: tc.identity}
			chosen, err := tc.options.chooseRequests("prod1", applicant{mc: tc.mc, requests: []request.Request{q}}, holding{},
				now)
			if tc.Refuse {
				require.ErrorContains(t, err, "has joined before")
				require.Empty(t, chosen)
				return
			}
			require.NoError(t, err)
			require.Len(t, chosen, 1)
		})
	}
}

// A name is kept for the agent that holds it while that agent reports: another agent needs an
// explicit Replace, the same agent needs nothing.
func TestANameIsKeptForTheAgentThatReports(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	const prefix = clusterv1.UserPrefix + "prod1:"
	reports := holding{agent: "a", reports: true, renewed: now.Add(-20 * time.Second), until: "2026-08-02T12:00:00Z"}
	for name, tc := range map[string]struct {
		held     holding
		agent    string
		identity string
		age      time.Duration
		options  Options
		says     []string
	}{
		"another agent": {
			held:  reports,
			agent: "b",
			age:   time.Minute,
			says: []string{"agent a (certificate until 2026-08-02T12:00:00Z)", "20s ago, after", "both are running",
				"agent b asks for it by r1, sent by sa"},
		},
		"whose rival may be gone": {
			held:  reports,
			agent: "b",
			age:   time.Second,
			says:  []string{"before the other agent asked: it may be gone"},
		},
		"another agent with a certificate": {
			held:     reports,
			agent:    "b",
			identity: "renewal",
			says:     []string{"another agent holds the name"},
		},
		"that a person gives the place":     {held: reports, agent: "b", options: Options{Replace: true}},
		"once the lease is stale":           {held: holding{agent: "a"}, agent: "b"},
		"the same agent":                    {held: reports, agent: "a"},
		"the same agent by its certificate": {held: reports, agent: "a", identity: "renewal"},
		"it is not known which agent holds it": {
			held:  holding{reports: true},
			agent: "b",
			says:  []string{"has not recorded", "counts as available"},
		},
		"but it renews": {held: holding{reports: true}, agent: "b", identity: "renewal"},
		"read on a cluster that was cloned": {
			held:    reports,
			agent:   "b",
			options: Options{Own: "r1"},
			says:    []string{"another agent holds the name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Hub = &fleet.Cluster{Context: "hub"}
			q := request.Request{Cluster: "prod1", Name: "r1", State: request.StatePending, Requester: prefix + tc.agent,
				User: "sa", Identity: tc.identity,
				Created: metav1.NewTime(now.Add(-tc.age))}
			chosen, err := tc.options.chooseRequests("prod1", applicant{requests: []request.Request{q}}, tc.held, now)
			if len(tc.says) == 0 {
				require.NoError(t, err)
				require.Len(t, chosen, 1)
				return
			}
			var refusal *fleet.Error
			require.ErrorAs(t, err, &refusal)
			for _, text := range tc.says {
				require.Contains(t, refusal.Message+" "+refusal.Cause, text)
			}
			require.Equal(t, ReplaceAgent.On(tc.options.Hub, "cluster", "prod1"), refusal.Fix)
		})
	}
}

func TestOfTheRequestsOfOneAgentTheNewestCounts(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	o := Options{Hub: &fleet.Cluster{Context: "hub"}}
	var asked []request.Request
	for i, name := range []string{"lost", "older", "new"} {
		asked = append(asked, request.Request{Cluster: "c1", Name: name, State: request.StatePending,
			Requester: clusterv1.UserPrefix + "c1:a", User: "sa",
			Created: metav1.NewTime(now.Add(time.Duration(i) * time.Second))})
	}
	chosen, err := o.chooseRequests("c1", applicant{requests: asked}, holding{}, now)
	require.NoError(t, err)
	require.Len(t, chosen, 1)
	require.Equal(t, "new", chosen[0].Name)
}

func TestLabelsThatAClusterGaveItselfAreToldWithTheirReaders(t *testing.T) {
	placement := clusterv1beta1.PlacementSpec{Predicates: []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		CELSelector:   clusterv1beta1.ClusterCELSelector{CELExpressions: []string{`managedCluster.metadata.labels["zone"] == "a"`}},
	}}}}
	r := readers{}
	r.add("placement default/p", placementKeys(&placement)...)
	r.add("clusterset prod", clusterv1.LabelClusterSet+"=prod")
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1",
		Annotations: map[string]string{clusterv1.AnnotationCreator: identity.BootstrapUser},
		Labels:      map[string]string{"env": "prod", "zone": "a", "team": "x", clusterv1.LabelClusterSet: "prod"}}}
	require.Equal(t, "cluster c1 gave itself: cluster.open-cluster-management.io/clusterset=prod (read by clusterset prod); "+
		"env=prod (read by placement default/p); team=x; zone=a (read by placement default/p)", r.selfLabels(mc).String())
	mc.Labels[clusterv1.LabelClusterSet] = "default"
	require.Len(t, r.selfLabels(mc).Labels, 3, "the hub's own word")
	mc.Annotations[clusterv1.AnnotationCreator] = "ann"
	require.Empty(t, r.selfLabels(mc).Labels, "a person gave them")
	mc.Annotations[clusterv1.AnnotationCreator], mc.Spec.HubAcceptsClient = identity.BootstrapUser, true
	require.Empty(t, r.selfLabels(mc).Labels, "it is in")
}
