// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	registration "github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func managed(name string, change ...func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	mc := registration.Gone(name)
	mc.UID, mc.ResourceVersion, mc.Generation = "uid", "1", 1
	for _, c := range change {
		c(mc)
	}
	return mc
}

func accepted(mc *clusterv1.ManagedCluster) { mc.Spec.HubAcceptsClient = true }

func deleting(mc *clusterv1.ManagedCluster) {
	mc.DeletionTimestamp = &metav1.Time{Time: now}
	mc.Finalizers = []string{clusterv1.FinalizerAPIResourceCleanup, "other"}
}

func with(kind string, status metav1.ConditionStatus) func(*clusterv1.ManagedCluster) {
	return func(mc *clusterv1.ManagedCluster) {
		mc.Status.Conditions = append(mc.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "R"})
	}
}

func there(uid string) Found {
	return Found{Exists: true, UID: "uid-" + "x", Version: "7", Intent: uid}
}

// all are the complete rights of a cluster, as found.
func all(name string) Rights {
	role := clusterRole(clusterv1.RolePrefixManagedCluster+name, name, acceptedRules(name)...)
	work := there(manager.Stamp(workBinding(name)))
	work.Finalizers = []string{clusterv1.FinalizerManifestWorkCleanup}
	return Rights{
		Role:         there(manager.Stamp(role)),
		Binding:      there(manager.Stamp(clusterBinding(name))),
		Registration: there(manager.Stamp(registrationBinding(name))),
		Work:         work,
	}
}

func sharedFound() map[string]Found {
	out := map[string]Found{}
	for _, r := range sharedRoles() {
		out[r.Name] = there(manager.Stamp(r))
	}
	return out
}

// applied and deleted print the writes of a plan, one object per line.
func applied(p reconcile.Plan) []string {
	var out []string
	for _, a := range reconcile.Of[reconcile.Apply](p.Writes) {
		line := strings.TrimPrefix(
			a.Object.GetObjectKind().GroupVersionKind().Kind+" "+a.Object.GetNamespace()+"/"+a.Object.GetName(), "/",
		)
		if rb, ok := a.Object.(*rbacv1.RoleBinding); ok && len(rb.Finalizers) == 0 && strings.HasSuffix(rb.Name, ":work") {
			line += " without finalizer"
		}
		out = append(out, line)
	}
	return out
}

func deleted(p reconcile.Plan) []string {
	var out []string
	for _, d := range reconcile.Of[reconcile.Remove](p.Writes) {
		out = append(out, d.String())
	}
	return out
}

const (
	role    = "open-cluster-management:managedcluster:c1"
	nothing = ""
)

func TestDecide(t *testing.T) {
	ours := Found{Exists: true, UID: "ns", Intent: manager.Stamp(namespace("c1")), Labels: labels("c1")}
	going := func(mc *clusterv1.ManagedCluster) {
		mc.Finalizers = append(mc.Finalizers, clusterv1.FinalizerResourceCleanup)
	}
	foreign := Found{Exists: true, UID: "ns"}
	terminating := Found{Exists: true, UID: "ns", Deleting: true, Labels: labels("c1")}
	lingering := all("c1")
	lingering.Work.Deleting = true
	for name, tc := range map[string]struct {
		state       State
		wantApply   []string
		wantDelete  []string
		wantStatus  metav1.ConditionStatus
		wantReason  string
		wantMessage string
		wantLease   bool
		wantAgain   time.Duration
		wantFinal   []string
		wantEvents  []string
		check       func(*testing.T, Decision)
	}{
		"a cluster that was never accepted gets nothing": {
			state: State{Cluster: managed("c1"), Name: "c1"},
		},
		"and loses what a former cluster of its name left": {
			state:     State{Cluster: managed("c1"), Name: "c1", Rights: all("c1"), Namespace: ours},
			wantApply: []string{"RoleBinding c1/" + role + ":work without finalizer"},
			wantDelete: []string{
				"clusterrolebindings " + role,
				"clusterroles " + role,
				"rolebindings c1/" + role + ":registration",
				"rolebindings c1/" + role + ":work",
			},
		},
		"an accepted cluster gets all": {
			state: State{Cluster: managed("c1", accepted), Name: "c1"},
			wantApply: []string{
				"Namespace /c1", "ClusterRole /open-cluster-management:managedcluster:registration",
				"ClusterRole /open-cluster-management:managedcluster:work",
				"ClusterRole /" + role, "ClusterRoleBinding /" + role, "RoleBinding c1/" + role + ":registration",
				"RoleBinding c1/" + role + ":work",
			},
			wantStatus: metav1.ConditionTrue, wantReason: clusterv1.ReasonHubClusterAdminAccepted, wantLease: true,
			wantFinal: []string{clusterv1.FinalizerAPIResourceCleanup}, wantEvents: []string{"ManagedClusterAccepted"},
			check: func(t *testing.T, d Decision) {
				require.True(
					t,
					apimeta.IsStatusConditionTrue(
						d.Object.(*clusterv1.ManagedCluster).Status.Conditions, clusterv1.ConditionClockSynced,
					),
				)
				require.Equal(t, clusterv1.ReasonError, d.OnFailure.Reason)
			},
		},
		"one that has all is left alone": {
			state: State{
				Cluster:   managed("c1", accepted, with(clusterv1.ConditionHubAccepted, metav1.ConditionTrue)),
				Name:      "c1",
				Namespace: ours,
				Rights:    all("c1"),
				Shared:    sharedFound(),
				Lease:     true,
			},
			wantStatus: metav1.ConditionTrue,
			wantReason: clusterv1.ReasonHubClusterAdminAccepted,
			wantFinal:  []string{clusterv1.FinalizerAPIResourceCleanup},
		},
		"what another writer changed is written again": {
			state: func() State {
				s := State{
					Cluster:   managed("c1", accepted, with(clusterv1.ConditionHubAccepted, metav1.ConditionTrue)),
					Name:      "c1",
					Namespace: ours,
					Rights:    all("c1"),
					Shared:    sharedFound(),
					Lease:     true,
				}
				s.Rights.Role.Shared = true
				return s
			}(),
			wantApply:  []string{"ClusterRole /" + role},
			wantStatus: metav1.ConditionTrue,
			wantReason: clusterv1.ReasonHubClusterAdminAccepted,
			wantFinal:  []string{clusterv1.FinalizerAPIResourceCleanup},
		},
		"a binding left over from a denial is removed first": {
			state: State{
				Cluster:   managed("c1", accepted, with(clusterv1.ConditionHubAccepted, metav1.ConditionFalse)),
				Name:      "c1",
				Namespace: ours,
				Rights:    lingering,
				Shared:    sharedFound(),
				Lease:     true,
			},
			wantApply:  []string{"RoleBinding c1/" + role + ":work without finalizer"},
			wantStatus: metav1.ConditionTrue, wantReason: clusterv1.ReasonHubClusterAdminAccepted,
			wantFinal: []string{clusterv1.FinalizerAPIResourceCleanup}, wantEvents: []string{"ManagedClusterAccepted"},
		},
		"a reserved name is refused": {
			state:      State{Cluster: managed("kube-system", accepted), Name: "kube-system"},
			wantStatus: metav1.ConditionFalse, wantReason: clusterv1.ReasonError, wantMessage: "reserved",
		},
		"a foreign namespace is not taken": {
			state:      State{Cluster: managed("c1", accepted), Name: "c1", Namespace: foreign},
			wantStatus: metav1.ConditionFalse, wantReason: clusterv1.ReasonError, wantMessage: "already exists",
		},
		"a foreign namespace with another UID than the one that was adopted is not taken": {
			state: State{Cluster: managed("c1", accepted, func(mc *clusterv1.ManagedCluster) {
				mc.Annotations = map[string]string{clusterv1.AnnotationAdoptedNamespace: "another"}
			}), Name: "c1", Namespace: foreign},
			wantStatus: metav1.ConditionFalse, wantReason: clusterv1.ReasonError, wantMessage: "already exists",
		},
		"an adopted namespace is labelled": {
			state: State{Cluster: managed("c1", accepted, func(mc *clusterv1.ManagedCluster) {
				mc.Annotations = map[string]string{clusterv1.AnnotationAdoptedNamespace: "ns"}
			}), Name: "c1", Namespace: foreign, Rights: all("c1"), Shared: sharedFound(), Lease: true},
			wantApply:  []string{"Namespace /c1"},
			wantStatus: metav1.ConditionTrue,
			wantReason: clusterv1.ReasonHubClusterAdminAccepted,
			wantFinal:  []string{clusterv1.FinalizerAPIResourceCleanup},
			wantEvents: []string{"ManagedClusterAccepted"},
		},
		"a terminating namespace is waited for": {
			state:      State{Cluster: managed("c1", accepted), Name: "c1", Namespace: terminating},
			wantStatus: metav1.ConditionFalse, wantReason: clusterv1.ReasonError, wantMessage: "is being deleted",
		},
		"a terminating namespace is let go when no work is left": {
			state:      State{Cluster: managed("c1", accepted), Name: "c1", Namespace: terminating, Rights: lingering},
			wantApply:  []string{"RoleBinding c1/" + role + ":work without finalizer"},
			wantStatus: metav1.ConditionFalse, wantReason: clusterv1.ReasonError, wantMessage: "is being deleted",
		},
		"and not before": {
			state: State{
				Cluster:   managed("c1", accepted),
				Name:      "c1",
				Namespace: terminating,
				Rights:    lingering,
				Works:     1,
			},
			wantStatus: metav1.ConditionFalse, wantReason: clusterv1.ReasonError, wantMessage: "is being deleted",
		},
		"a denied cluster keeps one rule, and works keep their binding": {
			state: State{
				Cluster: managed(
					"c1", with(clusterv1.ConditionHubAccepted, metav1.ConditionTrue),
					with(clusterv1.ConditionJoined, metav1.ConditionTrue),
				),
				Name: "c1", Namespace: ours, Rights: all("c1"), Works: 1,
			},
			wantApply:  []string{"ClusterRole /" + role},
			wantDelete: []string{"rolebindings c1/" + role + ":registration", "rolebindings c1/" + role + ":work"},
			wantStatus: metav1.ConditionFalse,
			wantReason: clusterv1.ReasonHubClusterAdminDenied,
			wantEvents: []string{"ManagedClusterDenied"},
			check: func(t *testing.T, d Decision) {
				require.Len(t, reconcile.Of[reconcile.Apply](d.Writes)[0].Object.(*rbacv1.ClusterRole).Rules, 1)
				require.True(
					t,
					apimeta.IsStatusConditionFalse(
						d.Object.(*clusterv1.ManagedCluster).Status.Conditions, clusterv1.ConditionJoined,
					),
				)
				require.Contains(
					t, d.Events[0].Message, "and to read and finish its existing works", "the message is true",
				)
				c := apimeta.FindStatusCondition(
					d.Object.(*clusterv1.ManagedCluster).Status.Conditions, clusterv1.ConditionHubAccepted,
				)
				require.Contains(t, c.Message, "may read and finish its existing works")
			},
		},
		"one that is denied without works has nothing left": {
			state: State{
				Cluster:   managed("c1", with(clusterv1.ConditionHubAccepted, metav1.ConditionTrue)),
				Name:      "c1",
				Namespace: ours,
			},
			wantStatus: metav1.ConditionFalse,
			wantReason: clusterv1.ReasonHubClusterAdminDenied,
			wantEvents: []string{"ManagedClusterDenied"},
			check: func(t *testing.T, d Decision) {
				require.NotContains(t, d.Events[0].Message, "works")
				c := apimeta.FindStatusCondition(
					d.Object.(*clusterv1.ManagedCluster).Status.Conditions, clusterv1.ConditionHubAccepted,
				)
				require.NotContains(t, c.Message, "works")
			},
		},
		"without works the binding is let go": {
			state: State{
				Cluster: managed("c1", with(clusterv1.ConditionHubAccepted, metav1.ConditionFalse)),
				Name:    "c1",
				Rights:  Rights{Work: lingering.Work},
			},
			wantApply:  []string{"RoleBinding c1/" + role + ":work without finalizer"},
			wantStatus: metav1.ConditionFalse,
			wantReason: clusterv1.ReasonHubClusterAdminDenied,
		},
		"a deleted cluster loses its rights and stays for its works": {
			state: State{Cluster: managed("c1", accepted, deleting), Name: "c1", Rights: all("c1"), Works: 2},
			wantDelete: []string{
				"clusterrolebindings " + role,
				"clusterroles " + role,
				"rolebindings c1/" + role + ":registration",
				"rolebindings c1/" + role + ":work",
			},
			wantFinal: []string{clusterv1.FinalizerAPIResourceCleanup, "other"},
		},
		"a deleted cluster keeps its rights while its add-ons are removed": {
			state: State{
				Cluster: managed("c1", accepted, deleting, going),
				Name:    "c1",
				Rights:  all("c1"),
				AddOns:  1,
				Works:   2,
			},
		},
		"and while it is not known whether it has add-ons": {
			state: State{
				Cluster: managed("c1", accepted, deleting, going),
				Name:    "c1",
				Rights:  all("c1"),
				Behind:  true,
			},
			wantAgain: catchUp,
		},
		"the binding for works stays while works may be left": {
			state: State{
				Cluster: managed("c1", with(clusterv1.ConditionHubAccepted, metav1.ConditionFalse)),
				Name:    "c1",
				Rights:  Rights{Work: lingering.Work},
				Behind:  true,
			},
			wantAgain: catchUp, wantStatus: metav1.ConditionFalse, wantReason: clusterv1.ReasonHubClusterAdminDenied,
		},
		"but not when it was denied": {
			state: State{Cluster: managed("c1", deleting, going), Name: "c1", Rights: all("c1"), AddOns: 1, Works: 2},
			wantDelete: []string{
				"clusterrolebindings " + role,
				"clusterroles " + role,
				"rolebindings c1/" + role + ":registration",
				"rolebindings c1/" + role + ":work",
			},
			wantFinal: []string{clusterv1.FinalizerAPIResourceCleanup, "other", clusterv1.FinalizerResourceCleanup},
		},
		"nor when it has no finalizer for its add-ons": {
			state: State{
				Cluster: managed("c1", accepted, deleting),
				Name:    "c1",
				Rights:  all("c1"),
				AddOns:  1,
				Works:   2,
			},
			wantDelete: []string{
				"clusterrolebindings " + role,
				"clusterroles " + role,
				"rolebindings c1/" + role + ":registration",
				"rolebindings c1/" + role + ":work",
			},
			wantFinal: []string{clusterv1.FinalizerAPIResourceCleanup, "other"},
		},
		"a deleted cluster goes when nothing is left, the last with the shared roles": {
			state: State{
				Cluster: managed("c1", accepted, deleting),
				Name:    "c1",
				Shared:  sharedFound(),
				Last:    true,
			},
			wantDelete: []string{
				"clusterroles open-cluster-management:managedcluster:registration",
				"clusterroles open-cluster-management:managedcluster:work",
			},
			wantFinal: []string{"other"},
		},
		"a cluster that vanished is cleaned up after": {
			state:      State{Name: "c1", Rights: Rights{Role: there("x"), Work: there("x")}, Works: 1},
			wantDelete: []string{"clusterroles " + role, "rolebindings c1/" + role + ":work"},
		},
		"a vanished cluster whose name is that of a shared role takes no role along": {
			state: State{Name: "work", Rights: Rights{Role: there("x")}},
		},
		"a listed creator is accepted by itself": {
			state: State{Cluster: managed("c1", func(mc *clusterv1.ManagedCluster) {
				mc.Annotations = map[string]string{clusterv1.AnnotationCreator: "u"}
			}), Name: "c1", AutoAccept: []string{"u"}},
			check: func(t *testing.T, d Decision) {
				mc := d.Object.(*clusterv1.ManagedCluster)
				require.True(t, mc.Spec.HubAcceptsClient)
				require.Equal(t, "2026-08-01T12:00:00Z", mc.Annotations[clusterv1.AnnotationAutomaticallyAcceptedOn])
			},
		},
		"once only: a denial by a user stays": {
			state: State{Cluster: managed("c1", func(mc *clusterv1.ManagedCluster) {
				mc.Annotations = map[string]string{
					clusterv1.AnnotationCreator:                 "u",
					clusterv1.AnnotationAutomaticallyAcceptedOn: "then",
				}
			}), Name: "c1", AutoAccept: []string{"u"}},
		},
		"nor is a denial undone that came before the gate": {
			state: State{Cluster: managed("c1", func(mc *clusterv1.ManagedCluster) {
				mc.Annotations = map[string]string{clusterv1.AnnotationCreator: "u"}
				mc.Status.Conditions = []metav1.Condition{
					{
						Type:   clusterv1.ConditionHubAccepted,
						Status: "False",
						Reason: clusterv1.ReasonHubClusterAdminDenied,
					},
				}
			}), Name: "c1", AutoAccept: []string{"u"}},
			wantReason: clusterv1.ReasonHubClusterAdminDenied, wantStatus: "False",
			check: func(t *testing.T, d Decision) {
				require.False(t, d.Object.(*clusterv1.ManagedCluster).Spec.HubAcceptsClient)
			},
		},
		"a listed creator's cluster that a user accepted first is only annotated": {
			state: State{
				Cluster: managed("c1", func(mc *clusterv1.ManagedCluster) {
					mc.Annotations, mc.Spec.HubAcceptsClient = map[string]string{clusterv1.AnnotationCreator: "u"}, true
				}),
				Name:       "c1",
				AutoAccept: []string{"u"},
				Lease:      true,
				Namespace:  Found{Exists: true, Deleting: true},
			},
			wantReason: clusterv1.ReasonError, wantStatus: "False",
			check: func(t *testing.T, d Decision) {
				require.Equal(
					t, "2026-08-01T12:00:00Z",
					d.Object.(*clusterv1.ManagedCluster).Annotations[clusterv1.AnnotationAutomaticallyAcceptedOn],
				)
			},
		},
		"a creator that is not listed is not accepted": {
			state: State{Cluster: managed("c1", func(mc *clusterv1.ManagedCluster) {
				mc.Annotations = map[string]string{clusterv1.AnnotationCreator: "v"}
			}), Name: "c1", AutoAccept: []string{"u"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.Now = now
			d := Decide(tc.state)
			require.Equal(t, tc.wantApply, applied(d.Plan))
			require.Equal(t, tc.wantDelete, deleted(d.Plan))
			require.Equal(t, tc.wantLease, d.CreateLease)
			require.Equal(t, tc.wantAgain, d.RequeueAfter)
			var events []string
			for _, e := range d.Events {
				events = append(events, e.Reason)
			}
			require.Equal(t, tc.wantEvents, events)
			if mc, ok := d.Object.(*clusterv1.ManagedCluster); ok {
				if tc.wantFinal != nil {
					require.Equal(t, tc.wantFinal, mc.Finalizers)
				}
				c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionHubAccepted)
				if tc.wantReason != nothing {
					require.NotNil(t, c)
					require.Equal(t, tc.wantStatus, c.Status)
					require.Equal(t, tc.wantReason, c.Reason)
					require.Contains(t, c.Message, tc.wantMessage)
				}
			} else {
				require.Empty(t, tc.wantReason)
			}
			if tc.check != nil {
				tc.check(t, d)
			}
		})
	}
}

func TestDecideLeavesItsInputAlone(t *testing.T) {
	mc := managed("c1", accepted)
	before := mc.DeepCopy()
	Decide(State{Cluster: mc, Name: "c1", Now: now})
	require.Equal(t, before, mc)
}

func TestOneClusterNeverGetsTheLabelsOfAnother(t *testing.T) {
	Decide(State{Cluster: managed("b", accepted), Name: "b", Now: now})
	d := Decide(State{
		Cluster: managed("a", with(clusterv1.ConditionHubAccepted, metav1.ConditionTrue)),
		Name:    "a",
		Rights:  all("a"),
		Now:     now,
	})
	for _, a := range reconcile.Of[reconcile.Apply](d.Writes) {
		require.Equal(t, "a", a.Object.GetLabels()[clusterv1.LabelClusterName])
	}
}

func TestConfiguredLabelsAreOnEverythingAndTakeNothingOver(t *testing.T) {
	extra := map[string]string{"team": "a", clusterv1.LabelClusterName: "x"}
	s := State{Cluster: managed("c1", accepted), Name: "c1", Now: now, Labels: extra}
	d := Decide(s)
	require.Len(t, reconcile.Of[reconcile.Apply](d.Writes), 7)
	for _, a := range reconcile.Of[reconcile.Apply](d.Writes) {
		want := "c1"
		if name := a.Object.GetName(); name == clusterv1.RoleRegistration || name == clusterv1.RoleWork {
			want = ""
		}
		require.Equal(
			t, map[string]string{"team": "a", clusterv1.LabelClusterName: want}, a.Object.GetLabels(),
			a.Object.GetName(),
		)
	}
	require.Equal(t, map[string]string{"team": "a", clusterv1.LabelClusterName: "x"}, extra)

	// Objects without them are written again, and only once.
	s.Namespace = Found{Exists: true, Intent: manager.Stamp(namespace("c1")), Labels: labels("c1")}
	s.Rights, s.Shared = all("c1"), sharedFound()
	require.Len(t, reconcile.Of[reconcile.Apply](Decide(s).Writes), 7)
	for _, a := range reconcile.Of[reconcile.Apply](d.Writes) {
		if a.Object.GetName() == "c1" {
			s.Namespace.Intent, s.Namespace.Labels = a.Object.GetAnnotations()[clusterv1.AnnotationIntent], a.Object.GetLabels()
		}
	}
	require.Len(t, reconcile.Of[reconcile.Apply](Decide(s).Writes), 6)
	delete(s.Namespace.Labels, "team")
	require.Len(t, reconcile.Of[reconcile.Apply](Decide(s).Writes), 7, "a label was removed from the namespace")

	s.Cluster, s.Works = managed("c1", deleting), 0
	for _, a := range reconcile.Of[reconcile.Apply](Decide(s).Writes) {
		require.Equal(t, "a", a.Object.GetLabels()["team"], "the binding that is let go keeps its labels")
	}
}

// covers reports whether the held rules include the wanted one, verb by verb, which the API
// server requires before it lets anyone grant rights.
func covers(held []rbacv1.PolicyRule, group, resource, name, verb string) bool {
	for _, r := range held {
		if contains(r.APIGroups, group) && contains(r.Resources, resource) && contains(r.Verbs, verb) &&
			(len(r.ResourceNames) == 0 || (name != "" && contains(r.ResourceNames, name))) {
			return true
		}
	}
	return false
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s || have == "*" {
			return true
		}
	}
	return false
}

func TestTheHubHoldsEveryRightThatItGives(t *testing.T) {
	objects, err := hub.Objects(hub.Options{Version: "v1"})
	require.NoError(t, err)
	var held []rbacv1.PolicyRule
	for _, u := range objects {
		if u.GetKind() == "ClusterRole" && u.GetName() == hub.Name {
			r, err := typed.FromUnstructured[rbacv1.ClusterRole](u)
			require.NoError(t, err)
			held = r.Rules
		}
	}
	given := append(acceptedRules("c1"), deniedRules("c1")...)
	for _, r := range sharedRoles() {
		given = append(given, r.Rules...)
	}
	for _, r := range given {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					for _, name := range names {
						require.True(
							t, covers(held, group, resource, name, verb), "%s %s/%s %s", verb, group, resource, name,
						)
					}
				}
			}
		}
	}
}
