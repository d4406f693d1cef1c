// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func served(change ...func(*State)) State {
	s := State{Now: noon, Cluster: true, AddOn: true, Asked: &authenticationv1beta1.ManagedServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: authenticationv1beta1.GroupVersion.String(), Kind: "ManagedServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u", ResourceVersion: "5", CreationTimestamp: metav1.NewTime(noon)},
	}}
	for _, c := range change {
		c(&s)
	}
	return s
}

// lives gives it a life that began at noon.
func lives(seconds int32, passed time.Duration, on bool) func(*State) {
	return func(s *State) {
		s.Asked.Spec.TTLSecondsAfterCreation, s.Now, s.Lifetime = &seconds, noon.Add(passed), on
	}
}

// holds gives it a token that ends an hour after noon.
func holds(status metav1.ConditionStatus, passed time.Duration) func(*State) {
	return func(s *State) {
		s.Now = noon.Add(passed)
		s.Asked.Status.ExpirationTimestamp = new(metav1.NewTime(noon.Add(time.Hour)))
		reconcile.SetCondition(&s.Asked.Status.Conditions, metav1.Condition{Type: "TokenReported", Status: status, Reason: "Before"}, noon)
	}
}

func TestWhenItIsDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*State)
		removed bool
		after   time.Duration
	}{
		"without a limit":              {func(s *State) { s.Lifetime, s.Now = true, noon.Add(9000*time.Hour) }, false, 0},
		"before its end":               {lives(60, 59*time.Second, true), false, time.Second},
		"at its end":                   {lives(60, time.Minute, true), true, 0},
		"a limit that was made longer": {lives(120, time.Minute, true), false, time.Minute},
		"the gate is off":              {lives(60, time.Hour, false), false, 0},
		"it is being deleted": {func(s *State) {
			lives(60, time.Hour, true)(s)
			s.Asked.DeletionTimestamp = new(metav1.NewTime(noon))
		}, false, 0},
		"the token ends before it": {func(s *State) {
			holds(metav1.ConditionTrue, 0)(s)
			lives(7200, 0, true)(s)
		}, false, time.Hour},
		"it ends before the token": {func(s *State) {
			holds(metav1.ConditionTrue, 0)(s)
			lives(60, 0, true)(s)
		}, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(served(tc.change))
			removes := reconcile.Of[reconcile.Remove](plan.Writes)
			require.Equal(t, tc.removed, len(removes) == 1)
			require.Equal(t, tc.after, plan.RequeueAfter)
			if tc.removed {
				require.Equal(t, "5", removes[0].Version, "the limit that was read is the one that counts")
				require.EqualValues(t, "u", removes[0].UID)
			}
		})
	}
}

func TestWhatIsSaidOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		change         func(*State)
		served, report string
	}{
		"nothing is wrong":                   {func(*State) {}, "", ""},
		"no cluster":                         {func(s *State) { s.Cluster = false }, "NoManagedCluster", ""},
		"no add-on":                          {func(s *State) { s.AddOn = false }, "AddOnMissing", ""},
		"no rights":                          {func(s *State) { s.Problem = "because" }, "RightsMissing", ""},
		"a limit, without the gate":          {lives(60, 0, false), "LifetimeNotEnabled", ""},
		"a limit, with the gate":             {lives(60, 0, true), "", ""},
		"a token":                            {holds(metav1.ConditionTrue, 0), "", "Before"},
		"a token that has ended":             {holds(metav1.ConditionTrue, time.Hour), "", "TokenExpired"},
		"an agent that already says what is": {holds(metav1.ConditionFalse, time.Hour), "", "Before"},
		"what was wrong is right": {func(s *State) {
			reconcile.SetCondition(&s.Asked.Status.Conditions, metav1.Condition{Type: "Served", Status: metav1.ConditionFalse, Reason: "AddOnMissing"}, noon)
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := served(tc.change)
			kept := before.Asked.DeepCopy()
			plan := Decide(before)
			require.Equal(t, kept, before.Asked)
			for kind, reason := range map[string]string{"Served": tc.served, "TokenReported": tc.report} {
				c := apimeta.FindStatusCondition(plan.Object.(*authenticationv1beta1.ManagedServiceAccount).Status.Conditions, kind)
				require.Equal(t, reason == "", c == nil, kind)
				if c != nil {
					require.Equal(t, reason, c.Reason)
				}
			}
		})
	}
}

// granted is the state in which an agent has its rights.
func granted(change ...func(*grant)) grant {
	r := grant{Cluster: "c1", AddOn: "i", Names: []string{"a", "b"}}
	r.Role, r.Binding = r.role(), r.binding()
	for _, c := range change {
		c(&r)
	}
	return r
}

func TestRightsOfAnAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		change                 func(*grant)
		role, binding, removed bool
	}{
		"as they should be":            {func(*grant) {}, false, false, false},
		"no rights":                    {func(r *grant) { r.Role, r.Binding = nil, nil }, true, true, false},
		"another name":                 {func(r *grant) { r.Names = []string{"a", "b", "c"} }, true, false, false},
		"a name less":                  {func(r *grant) { r.Names = nil }, true, false, false},
		"a right that somebody added":  {func(r *grant) { r.Role.Rules[2].Verbs = []string{"create", "list"} }, true, false, false},
		"a subject that somebody took": {func(r *grant) { r.Binding.Subjects = nil }, false, true, false},
		"another role":                 {func(r *grant) { r.Binding.RoleRef.Name = "admin" }, false, true, true},
		"another instance":             {func(r *grant) { r.AddOn = "j" }, true, true, false},
		"no instance":                  {func(r *grant) { r.AddOn, r.Role, r.Binding = "", nil, nil }, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			writes, err := granted(tc.change).decide()
			require.NoError(t, err)
			written := map[string]bool{}
			for _, w := range reconcile.Of[reconcile.Apply](writes) {
				written[w.Object.GetObjectKind().GroupVersionKind().Kind] = true
			}
			require.Equal(t, []bool{tc.role, tc.binding}, []bool{written["Role"], written["RoleBinding"]})
			require.Equal(t, tc.removed, len(reconcile.Of[reconcile.Remove](writes)) == 1)
		})
	}
	_, err := granted(func(r *grant) { r.Role.Labels = nil }).decide()
	require.ErrorIs(t, err, errForeign)
}

// A rule without names would be about every Secret of the namespace.
func TestNoNameIsNotEveryName(t *testing.T) {
	for _, rule := range granted(func(r *grant) { r.Names = nil }).role().Rules {
		if rule.Resources[0] == "secrets" {
			require.Equal(t, []string{"create"}, rule.Verbs)
		}
	}
	require.Equal(t, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a", "b"}, Verbs: []string{"get", "list", "watch", "patch"},
	}, granted().role().Rules[3])
	require.Equal(t, []rbacv1.Subject{{
		APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "system:open-cluster-management:cluster:c1:addon:managed-serviceaccount",
	}}, granted().binding().Subjects)
}
