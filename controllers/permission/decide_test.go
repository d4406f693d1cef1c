// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/permission/grant"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	now  = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	then = metav1.NewTime(now.Add(-time.Hour))
	user = &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "u"}
)

func thePermission() *permissionv1alpha1.ClusterPermission {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	return &permissionv1alpha1.ClusterPermission{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "p", UID: "12345678", Generation: 3},
		Spec: permissionv1alpha1.ClusterPermissionSpec{
			ClusterRole:        &permissionv1alpha1.ClusterRole{Rules: rules},
			ClusterRoleBinding: &permissionv1alpha1.ClusterRoleBinding{Subject: user},
			Roles:              []permissionv1alpha1.Role{{Namespace: "a", Rules: rules}},
			RoleBindings:       []permissionv1alpha1.RoleBinding{{Namespace: "a", RoleRef: permissionv1alpha1.RoleRef{Kind: "Role"}, Subject: user}},
		},
	}
}

func state(change ...func(*State)) State {
	s := State{Permission: thePermission(), Cluster: true, Now: now}
	for _, c := range change {
		c(&s)
	}
	return s
}

// theWork returns the work that a decision sends for the state, with the reports of an agent.
func theWork(t *testing.T, s State, change ...func(*workv1.ManifestWork)) Work {
	t.Helper()
	s.Works, s.Last = nil, Sent{}
	sent := reconcile.Of[reconcile.Apply](Decide(s).Writes)
	require.Len(t, sent, 1)
	w := sent[0].Object.(*workv1.ManifestWork).DeepCopy()
	w.UID, w.ResourceVersion, w.Generation = "w", "7", 2
	for _, c := range change {
		c(w)
	}
	u, err := typed.ToUnstructured(w)
	require.NoError(t, err)
	kept, ok := keep(u)
	require.True(t, ok)
	return kept
}

// says makes the agent report Applied and Available of every object.
func says(status, message string) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		c := func(kind string) metav1.Condition {
			return metav1.Condition{
				Type: kind, Status: metav1.ConditionStatus(status), Reason: "AppliedManifestWorkComplete", Message: message,
				ObservedGeneration: w.Generation, LastTransitionTime: then,
			}
		}
		w.Status.Conditions = []metav1.Condition{c(workv1.ConditionApplied)}
		w.Status.ResourceStatus.Manifests = nil
		for i, m := range w.Spec.Workload.Manifests {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(m.Raw); err != nil {
				panic(err)
			}
			w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
				ResourceMeta: workv1.ManifestResourceMeta{
					Ordinal: int32(i), Group: rbacv1.GroupName, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
				},
				Conditions: []metav1.Condition{c(workv1.ConditionApplied), c(workv1.ConditionAvailable)},
			})
		}
	}
}

func condition(t *testing.T, d Decision, kind string) metav1.Condition {
	t.Helper()
	cp, ok := d.Object.(*permissionv1alpha1.ClusterPermission)
	require.True(t, ok)
	c := apimeta.FindStatusCondition(cp.Status.Conditions, kind)
	require.NotNil(t, c, kind)
	require.EqualValues(t, 3, c.ObservedGeneration)
	return *c
}

func TestWhatIsRefusedAndWhatStays(t *testing.T) {
	validation, applied := permissionv1alpha1.ConditionValidation, permissionv1alpha1.ConditionApplied
	for name, tc := range map[string]struct {
		change                  func(*State)
		kind, reason, message   string
		requeues, keepsValidity bool
	}{
		"no binding": {
			change: func(s *State) { s.Permission.Spec.ClusterRoleBinding, s.Permission.Spec.RoleBindings = nil, nil },
			kind:   validation, reason: "FailedValidationNoBindingsDefined", message: "spec: no binding is defined",
		},
		"no cluster": {
			change: func(s *State) { s.Cluster = false },
			kind:   validation, reason: "FailedValidationNotInManagedClusterNamespace", message: "there is no ManagedCluster c1",
		},
		"a cluster that goes": {
			change: func(s *State) { s.Leaving = true },
			kind:   validation, reason: "FailedValidationNotInManagedClusterNamespace", message: "ManagedCluster c1 is being deleted",
		},
		"a mistake": {
			change: func(s *State) { s.Permission.Spec.Roles[0].Namespace = "" },
			kind:   applied, reason: "FailedBuildManifestWork", message: "spec.roles[0]: has neither namespace nor namespaceSelector",
			keepsValidity: true,
		},
		"something that is missing": {
			change: func(s *State) {
				s.Permission.Spec.Roles[0].Namespace, s.Permission.Spec.Roles[0].NamespaceSelector = "", &metav1.LabelSelector{}
			},
			kind: applied, reason: "FailedBuildManifestWork", message: "spec.roles[0].namespaceSelector: selects no namespace of the hub",
			keepsValidity: true,
		},
		"a work of somebody else": {
			change: func(s *State) { s.Taken = true },
			kind:   applied, reason: "FailedBuildManifestWork", message: "metadata.name: ManifestWork c1/p-12345 is not of this ClusterPermission",
			requeues: true, keepsValidity: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(tc.change)
			d := Decide(s)
			require.Empty(t, d.Writes)
			c := condition(t, d, tc.kind)
			require.Equal(t, metav1.ConditionFalse, c.Status)
			require.Equal(t, tc.reason, c.Reason)
			require.Contains(t, c.Message, tc.message)
			require.Equal(t, tc.requeues, d.RequeueAfter > 0)
			if tc.keepsValidity {
				require.Equal(t, metav1.ConditionTrue, condition(t, d, validation).Status)
			}
			require.Len(t, d.Events, 1)
			require.Equal(t, []string{"Warning", tc.reason}, []string{d.Events[0].Type, d.Events[0].Reason})
			again := s
			again.Permission = d.Object.(*permissionv1alpha1.ClusterPermission)
			require.Empty(t, Decide(again).Events, "it is told once")

			if !s.Cluster || s.Leaving || s.Taken {
				return
			}
			s.Works = []Work{theWork(t, state())}
			d = Decide(s)
			require.Empty(t, d.Writes, "what was sent before stays")
			require.Contains(t, condition(t, d, tc.kind).Message, "; the rights that were sent before stay")
		})
	}
	require.Empty(t, Decide(state(func(s *State) { s.Permission.DeletionTimestamp = &then })), "the garbage collector does the rest")
}

func TestOneWork(t *testing.T) {
	d := Decide(state())
	writes := reconcile.Of[reconcile.Apply](d.Writes)
	require.Len(t, writes, 1)
	require.True(t, writes[0].Exact)
	w := writes[0].Object.(*workv1.ManifestWork)
	require.Equal(t, []string{"c1", "p-12345"}, []string{w.Namespace, w.Name})
	require.Equal(t, []metav1.OwnerReference{{
		APIVersion: "rbac.open-cluster-management.io/v1alpha1", Kind: "ClusterPermission", Name: "p", UID: "12345678",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}, w.OwnerReferences)
	require.Equal(t, map[string]string{"rbac.open-cluster-management.io/clusterpermission": "12345678"}, w.Labels)
	require.Len(t, w.Spec.Workload.Manifests, 4)
	require.Equal(t, "FailedBuildManifestWork", d.OnFailure.Reason)
	pending := condition(t, d, permissionv1alpha1.ConditionApplied)
	require.Equal(t, []string{"False", "ApplyRBACManifestWorkNotComplete"}, []string{string(pending.Status), pending.Reason})
	require.Contains(t, pending.Message, "kubectl get manifestworks -n c1 p-12345 -o yaml")
	require.Empty(t, d.Events, "a new one is no news")

	foreign := func(w *workv1.ManifestWork) { w.Labels = nil }
	changed := func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[:1] }
	sent := theWork(t, state()).Spec
	for name, tc := range map[string]struct {
		change func(*workv1.ManifestWork)
		last   Sent
		writes, tells,
		waits bool
	}{
		"as it should be":                    {change: func(*workv1.ManifestWork) {}},
		"that of another controller":         {change: foreign, writes: true},
		"that has lost its owner":            {change: func(w *workv1.ManifestWork) { w.OwnerReferences = nil }, writes: true},
		"changed while the process was away": {change: changed, writes: true},
		"changed after it was sent":          {change: changed, last: Sent{Spec: sent, Base: "6"}, writes: true, tells: true},
		"changed long after it was put right": {
			change: changed, last: Sent{Spec: sent, Base: "6", Repaired: now.Add(-2 * time.Minute)}, writes: true, tells: true,
		},
		"changed again and again": {change: changed, last: Sent{Spec: sent, Base: "6", Repaired: now.Add(-time.Second)}, waits: true},
		"of before what was sent": {change: changed, last: Sent{Spec: sent, Base: "7"}},
		"of an older spec":        {change: changed, last: Sent{Base: "6", Repaired: now}, writes: true},
		"made to leave its objects, and be deleted": {change: func(w *workv1.ManifestWork) {
			changed(w)
			w.Annotations = map[string]string{workv1.AnnotationKept: ""}
		}},
		"being deleted": {change: func(w *workv1.ManifestWork) { w.DeletionTimestamp, w.Finalizers = &then, []string{"f"} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(func(s *State) { s.Last = tc.last })
			s.Works = []Work{theWork(t, s, tc.change)}
			d := Decide(s)
			require.Equal(t, tc.writes, len(d.Writes) == 1)
			require.Equal(t, tc.writes, d.Sent != Sent{})
			require.Equal(t, tc.tells, len(d.Events) == 1)
			require.Equal(t, tc.tells, !d.Sent.Repaired.IsZero())
			require.Equal(t, tc.waits, d.RequeueAfter > 0)
		})
	}

	s := state()
	first, second := theWork(t, s), theWork(t, s)
	first.Name, second.UID = "p-00000", "other"
	s.Works = []Work{first, second}
	d = Decide(s)
	require.Len(t, d.Writes, 1, "the older one is kept, with its name")
	removed := reconcile.Of[reconcile.Remove](d.Writes)
	require.Len(t, removed, 1)
	require.EqualValues(t, "other", removed[0].UID)
}

func TestWhatTheAgentSaysIsReported(t *testing.T) {
	s := state(func(s *State) {
		s.Permission.Spec.Validate = ptr.To(true)
		s.Permission.Spec.RoleBindings[0].RoleRef = permissionv1alpha1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "theirs"}
	})
	s.Works = []Work{theWork(t, s, says("True", "fine"))}
	d := Decide(s)
	require.Empty(t, d.Writes)
	for kind, reason := range map[string]string{
		permissionv1alpha1.ConditionApplied: "AppliedManifestWorkComplete", permissionv1alpha1.ConditionValidation: "Validated",
		permissionv1alpha1.ConditionValidateRolesExist: "AllRolesFound", permissionv1alpha1.ConditionValidateClusterRolesExist: "AllClusterRolesFound",
	} {
		c := condition(t, d, kind)
		require.Equal(t, []string{"True", reason}, []string{string(c.Status), c.Reason})
	}
	require.Len(t, d.Events, 1)
	require.Equal(t, "Normal", d.Events[0].Type)
	got := d.Object.(*permissionv1alpha1.ClusterPermission)
	conditions := []metav1.Condition{{
		Type: "Applied", Status: "True", Reason: "AppliedManifestComplete", Message: "fine", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(now),
	}}
	require.Empty(t, cmp.Diff(&permissionv1alpha1.ResourceStatus{
		ClusterRoles:        []permissionv1alpha1.ClusterResource{{Name: "p", Conditions: conditions}},
		ClusterRoleBindings: []permissionv1alpha1.ClusterResource{{Name: "p", Conditions: conditions}},
		Roles:               []permissionv1alpha1.NamespacedResource{{Namespace: "a", Name: "p", Conditions: conditions}},
		RoleBindings:        []permissionv1alpha1.NamespacedResource{{Namespace: "a", Name: "p", Conditions: conditions}},
	}, got.Status.ResourceStatus), "roles that are only looked at are not listed")

	later := s
	later.Permission, later.Now = got, now.Add(time.Hour)
	d = Decide(later)
	require.Empty(t, cmp.Diff(got, d.Object), "a pass without news changes nothing, times included")
	require.Empty(t, d.Events)

	later.Works = []Work{theWork(t, s, says("True", "fine"), func(w *workv1.ManifestWork) {
		for i := range w.Status.ResourceStatus.Manifests {
			m := &w.Status.ResourceStatus.Manifests[i]
			switch {
			case m.ResourceMeta.Name == "theirs":
				m.Conditions[1].Status = "False"
			case m.ResourceMeta.Kind == "Role":
				m.Conditions[0].Status, m.Conditions[0].Message = "False", "forbidden"
			case m.ResourceMeta.Kind == "ClusterRole":
				m.Conditions = nil
			}
		}
	})}
	d = Decide(later)
	missing := condition(t, d, permissionv1alpha1.ConditionValidateRolesExist)
	require.Equal(t, []string{"False", "RolesNotFound"}, []string{string(missing.Status), missing.Reason})
	require.Contains(t, missing.Message, "Not found on cluster c1: a/theirs;")
	require.Equal(t, "AllClusterRolesFound", condition(t, d, permissionv1alpha1.ConditionValidateClusterRolesExist).Reason)
	status := d.Object.(*permissionv1alpha1.ClusterPermission).Status.ResourceStatus
	require.Equal(t, []string{"FailedApplyManifest", "forbidden"}, []string{status.Roles[0].Conditions[0].Reason, status.Roles[0].Conditions[0].Message})
	require.Equal(t, "FailedGetManifestCondition", status.ClusterRoles[0].Conditions[0].Reason)
	require.Equal(t, conditions, status.RoleBindings[0].Conditions)

	for name, change := range map[string]func(*workv1.ManifestWork){
		"an older spec":          func(w *workv1.ManifestWork) { w.Generation++ },
		"another spec":           func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[1:] },
		"a work that goes":       func(w *workv1.ManifestWork) { w.DeletionTimestamp, w.Finalizers = &then, []string{"f"} },
		"nothing about anything": func(w *workv1.ManifestWork) { w.Status = workv1.ManifestWorkStatus{} },
	} {
		t.Run("about "+name, func(t *testing.T) {
			later.Works = []Work{theWork(t, s, says("True", "fine"), change)}
			d := Decide(later)
			require.Equal(t, "ApplyRBACManifestWorkNotComplete", condition(t, d, permissionv1alpha1.ConditionApplied).Reason)
			require.Nil(t, apimeta.FindStatusCondition(d.Object.(*permissionv1alpha1.ClusterPermission).Status.Conditions, "ValidateRolesExist"))
		})
	}
	later.Permission = got.DeepCopy()
	later.Permission.Spec.Validate = nil
	d = Decide(later)
	require.Nil(t, apimeta.FindStatusCondition(d.Object.(*permissionv1alpha1.ClusterPermission).Status.Conditions, "ValidateRolesExist"))
}

func TestAccountsAreAwaited(t *testing.T) {
	s := state(func(s *State) {
		s.Undecided = true
		s.Permission.Spec.ClusterRoleBinding.Subject = &rbacv1.Subject{
			APIGroup: permissionv1alpha1.GroupManagedServiceAccount, Kind: permissionv1alpha1.KindManagedServiceAccount, Name: "argo",
		}
	})
	require.Empty(t, Decide(s), "until they are known")
	s.Undecided = false
	require.Contains(t, condition(t, Decide(s), permissionv1alpha1.ConditionApplied).Message,
		"spec.clusterRoleBinding: there is no ManagedServiceAccount argo in namespace c1")
	s.Facts = grant.Facts{Accounts: map[string]bool{"argo": true}, AddOn: true, AddOnNamespace: "agents"}
	before := theWork(t, s)
	s.Works = []Work{before}
	require.Empty(t, Decide(s).Writes)
	s.Facts.AddOnNamespace = "moved"
	require.Len(t, Decide(s).Writes, 1)
	require.Len(t, Decide(state(func(s *State) { s.Undecided = true })).Writes, 1, "others do not wait")
}

func TestOnlyWorksOfClusterPermissionsAreKept(t *testing.T) {
	owner := metav1.OwnerReference{
		APIVersion: "rbac.open-cluster-management.io/v1alpha1", Kind: "ClusterPermission", Name: "p", UID: "u", Controller: ptr.To(true),
	}
	other, foreign := owner, owner
	other.Kind, foreign.APIVersion = "Other", "rbac.open-cluster-management.io.example.com/v1alpha1"
	plain := owner
	plain.Controller = nil
	for name, tc := range map[string]struct {
		name, label string
		owner       *metav1.OwnerReference
		want        string
	}{
		"controlled":                        {name: "p-11111", owner: &owner, want: "u"},
		"controlled by another kind":        {name: "p-11111", label: "1111122222", owner: &other},
		"controlled by a kind of that name": {name: "p-11111", label: "1111122222", owner: &foreign},
		"that has lost its owner":           {name: "p-11111", label: "1111122222", want: "c1/p"},
		"that has an owner of another sort": {name: "p-11111", label: "1111122222", owner: &plain, want: "c1/p"},
		"that only somebody has labelled":   {name: "web", label: "1111122222"},
		"that has no name but the suffix":   {name: "-11111", label: "1111122222"},
		"without label and owner":           {name: "p-11111"},
		"with the label that is empty":      {name: "p-", label: ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"}}
			w.SetNamespace("c1")
			w.SetName(tc.name)
			w.SetLabels(map[string]string{permissionv1alpha1.LabelClusterPermission: tc.label})
			if tc.owner != nil {
				w.SetOwnerReferences([]metav1.OwnerReference{*tc.owner})
			}
			got, ok := keep(w)
			require.Equal(t, tc.want != "", ok)
			if ok {
				require.Equal(t, tc.want, got.owner())
				require.Equal(t, "c1/p", got.Permission.String())
			}
		})
	}
}
