// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// hostedState returns that of a hosted Klusterlet with tokens of two days' age.
func hostedState(change ...func(*State)) State {
	return state(append([]func(*State){func(s *State) {
		s.Klusterlet.Spec.DeployOption.Mode = operatorv1.InstallModeSingletonHosted
		s.Klusterlet.Finalizers = append(s.Klusterlet.Finalizers, operatorv1.FinalizerKlusterletHosted)
		s.Managed = Managed{
			Namespaces: map[string]Labelled{}, Accounts: map[string]types.UID{"k-work-sa": "u"}, Kubeconfig: []byte("config"),
		}
		s.Secrets["k"] = map[string]Secret{"external-managed-kubeconfig-agent": {Data: map[string][]byte{
			"kubeconfig": []byte("config"), "token": []byte("t"), "serviceaccount_uid": []byte("u"),
			"issued": []byte(now.Add(-48 * time.Hour).Format(time.RFC3339)), "expiration": []byte(now.Add(5 * 24 * time.Hour).Format(time.RFC3339)),
		}}}
	}}, change...)...)
}

func due(p Plan) (out []token) {
	for _, stage := range p.Stages {
		out = append(out, stage.tokens...)
	}
	return out
}

func TestTokensAreReplacedInTime(t *testing.T) {
	const name = "external-managed-kubeconfig-agent"
	set := func(key, value string) func(*State) {
		return func(s *State) { s.Secrets["k"][name].Data[key] = []byte(value) }
	}
	for name, tc := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"fresh":                         {func(*State) {}, false},
		"a fifth is left":               {func(s *State) { s.Now = now.Add(5*24*time.Hour - 7*24*time.Hour/5) }, true},
		"shortly before":                {func(s *State) { s.Now = now.Add(5*24*time.Hour - 7*24*time.Hour/5 - time.Second) }, false},
		"of an account that is gone":    {set("serviceaccount_uid", "v"), true},
		"for another address":           {set("kubeconfig", "other"), true},
		"without a token":               {set("token", ""), true},
		"without a time":                {set("issued", ""), true},
		"with a broken time":            {set("expiration", "soon"), true},
		"no secret":                     {func(s *State) { delete(s.Secrets, "k") }, true},
		"no account yet, no secret too": {func(s *State) { s.Managed.Accounts = nil; delete(s.Secrets, "k") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(hostedState(tc.change))
			require.Equal(t, tc.want, len(due(p)) == 1)
			if !tc.want && name != "no account yet, no secret too" {
				require.Positive(t, p.RequeueAfter)
			}
		})
	}
}

func TestAHostedAgentIsPreparedFirst(t *testing.T) {
	p := Decide(hostedState(func(s *State) { s.Klusterlet.Finalizers = s.Klusterlet.Finalizers[:1] }))
	require.Empty(t, p.Stages, "the finalizer comes first")
	require.Contains(t, p.Object.GetFinalizers(), operatorv1.FinalizerKlusterletHosted)
	require.Equal(t, "True KlusterletPrepared", condition(t, p, operatorv1.ConditionReadyToApply))

	p = Decide(hostedState(func(s *State) { s.Managed.Problem = "out of reach" }))
	require.Empty(t, p.Stages)
	require.Equal(t, "False KlusterletPrepareFailed", condition(t, p, operatorv1.ConditionReadyToApply))
	require.Equal(t, "False KlusterletApplyFailed", condition(t, p, operatorv1.ConditionApplied))
	require.Len(t, p.Writes, 1, "the namespace for the Secret")
	require.IsType(t, reconcile.Create{}, p.Writes[0])
	p = Decide(hostedState(func(s *State) {
		s.Managed.Problem, s.Namespaces["k"] = "out of reach", Labelled{Name: "k", Klusterlet: "k"}
	}))
	require.Empty(t, p.Writes)
}

func TestWhatAHostedAgentIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*State)
		want   string
	}{
		"the name of a system namespace":        {func(s *State) { s.Klusterlet.Name = "kube-system" }, "choose another name"},
		"a name that no namespace has":          {func(s *State) { s.Klusterlet.Name = "a.b" }, "choose another name"},
		"the namespace of a cluster on the hub": {func(s *State) { s.HubNamespaceOf = "k" }, "managed cluster k, whose hub is this cluster"},
		"the namespace of another": {func(s *State) {
			s.Managed.Namespaces[namespace] = Labelled{Name: namespace, Klusterlet: "x"}
		}, "klusterlet/x"},
		"a move to the managed cluster": {func(s *State) { s.Klusterlet.Spec.DeployOption.Mode = operatorv1.InstallModeDefault }, "cannot change"},
		"a mode that does not exist":    {func(s *State) { s.Klusterlet.Spec.DeployOption.Mode = "hosted" }, "use Default, Singleton, Hosted or"},
		"a move from the managed cluster": {func(s *State) {
			s.Klusterlet.Finalizers, s.Namespaces[namespace] = s.Klusterlet.Finalizers[:1], Labelled{Name: namespace, Klusterlet: "k", Owner: "k"}
		}, "cannot change"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(hostedState(tc.change))
			require.Empty(t, p.Stages)
			require.Empty(t, p.Writes)
			c := apimeta.FindStatusCondition(p.Object.(*operatorv1.Klusterlet).Status.Conditions, operatorv1.ConditionApplied)
			require.Contains(t, c.Message, tc.want)
		})
	}
}

func TestAManagedClusterOutOfReachIsGivenUpAfterAWhile(t *testing.T) {
	const key = operatorv1.AnnotationManagedResourcesEvictionTimestamp
	since := func(d time.Duration) func(*State) {
		return func(s *State) { s.Klusterlet.Annotations = map[string]string{key: now.Add(-d).Format(time.RFC3339)} }
	}
	for name, tc := range map[string]struct {
		change     func(*State)
		absent     bool
		left, wait bool
		annotation bool
	}{
		"it is reached":                       {func(s *State) { s.Managed.Problem = "" }, false, false, false, false},
		"the time begins":                     {func(*State) {}, false, false, true, true},
		"the time runs":                       {since(evictionGrace - time.Second), false, false, true, true},
		"the time is up":                      {since(evictionGrace), false, true, false, true},
		"the time is none":                    {func(s *State) { s.Klusterlet.Annotations = map[string]string{key: "x"} }, false, false, true, true},
		"no Secret: it does not begin":        {func(*State) {}, true, false, true, false},
		"no Secret: an administrator says so": {since(time.Hour), true, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := hostedState(func(s *State) {
				s.Klusterlet.DeletionTimestamp = &metav1.Time{Time: now}
				s.Managed.Problem, s.Managed.Absent = "it does not answer", tc.absent
			}, tc.change)
			p := Decide(s)
			require.Equal(t, tc.left, p.Left)
			require.Equal(t, !tc.wait, p.Remove)
			require.Equal(t, !tc.wait && !tc.left, p.Managed)
			require.Equal(t, tc.left, len(p.Events) == 1)
			require.Equal(t, tc.annotation, p.Object.GetAnnotations()[key] != "")
			require.Equal(t, tc.wait, len(p.Object.GetFinalizers()) == 2)
			require.Contains(t, p.Object.GetFinalizers(), operatorv1.FinalizerKlusterlet, "what is here comes next")
		})
	}
}

func TestAHostedAgentHasNoRightsBeyondItsNamespace(t *testing.T) {
	k := hostedState().Klusterlet
	objects, err := rights(k, "k", true)
	require.NoError(t, err)
	kinds := func(list []*unstructured.Unstructured) map[string]int {
		out := map[string]int{}
		for _, u := range list {
			out[u.GetKind()]++
		}
		return out
	}
	managed := map[string]int{"ServiceAccount": 2, "ClusterRole": 6, "ClusterRoleBinding": 7, "Role": 1, "RoleBinding": 1}
	require.Equal(t, managed, kinds(ofManaged(objects, true)))
	bound := 0
	for _, u := range objects {
		if u.GetName() == manifests.ProxyBinding("k") && strings.HasSuffix(u.GetKind(), "Binding") {
			require.Empty(t, u.Object["subjects"], "without its gate nobody has the rights of the tunnel")
			bound++
		}
	}
	require.Equal(t, 2, bound)
	here := ofManaged(objects, false)
	require.Equal(t, map[string]int{"ServiceAccount": 2, "ClusterRoleBinding": 1, "Role": 2, "RoleBinding": 2}, kinds(here))
	for _, u := range here {
		if u.GetKind() == "ClusterRoleBinding" {
			role, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
			require.Equal(t, "system:auth-delegator", role)
		}
	}
}

// TestRightsInTheNamespaceOfAddOnsAwaitIt: what cannot be written would keep all else from being written.
func TestRightsInTheNamespaceOfAddOnsAwaitIt(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace shared.Namespace
		none      bool
		placed    int
	}{
		"it is made":           {placed: 2},
		"it is there":          {namespace: shared.Namespace{ResourceVersion: "1"}, placed: 2},
		"it goes":              {namespace: shared.Namespace{ResourceVersion: "1", Leaving: true}},
		"none is made":         {none: true},
		"none is made, but is": {namespace: shared.Namespace{ResourceVersion: "1"}, none: true, placed: 2},
	} {
		s := hostedState(func(s *State) { s.Parts.AddOnNamespace, s.Parts.NoAddOns = tc.namespace, tc.none })
		objects, err := rights(s.Klusterlet, "k", true)
		require.NoError(t, err)
		got := len(s.placeable(slices.Clone(objects)))
		require.Equal(t, len(objects)-2+tc.placed, got, name)
	}
}
