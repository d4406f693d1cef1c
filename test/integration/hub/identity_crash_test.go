// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/permission"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	accounthub "github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// accountLoops and permissionLoop are the control loops of identities and of their rights.
var (
	accountLoops = loops{
		kinds: []func(*runtime.Scheme) error{clusterv1.AddToScheme, addonhealth.AddToScheme},
		register: func(m *manager.Manager, dyn dynamic.Interface) {
			accounthub.Register(m, accounthub.Config{Client: dyn, Manager: dyn, Clock: clock.RealClock{}, Lifetime: true})
		},
	}
	permissionLoop = loops{
		kinds: []func(*runtime.Scheme) error{clusterv1.AddToScheme, permissionv1alpha1.AddToScheme},
		register: func(m *manager.Manager, dyn dynamic.Interface) {
			permission.Register(m, permission.Config{Client: dyn, Clock: clock.RealClock{}})
		},
	}
)

// lodging is a hub whose cluster "lodge" has identities, and rights for them.
type lodging struct {
	*scene
	config *rest.Config
	// made are the UIDs of the objects that may be made once only, and doubled is true while a work
	// of somebody else is one too many.
	made    map[string]types.UID
	doubled bool
}

const lodge = "lodge"

// TestTheLoopsOfIdentitiesMayDieAfterEveryWrite ends the loops after every write: when the agent of
// a cluster gets its rights, when an account comes and another one ends, and when the add-on goes;
// when permissions are new, when one is edited, and when one is there twice. The result is always
// the same as without faults.
func TestTheLoopsOfIdentitiesMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	l := &lodging{made: map[string]types.UID{}}
	l.scene, l.config = served(t, lodge)
	for _, name := range []string{crd.ManagedServiceAccounts, crd.ClusterPermissions} {
		definition, err := crd.Any(name)
		require.NoError(t, err)
		_, err = l.dyn.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	// The rights of the add-on manager have tests of their own.
	_, err := l.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hub.Namespace, Name: hub.Name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	mc := cluster(lodge)
	mc.Spec.HubAcceptsClient = true
	settled(t, func() error { return create(l.dyn, mc) })
	l.testAccounts(t)
	l.testPermissions(t)
}

// dying runs the loops, which die after each write, until done returns true, and fails if an object
// was made twice.
func (l *lodging) dying(t *testing.T, what string, run loops, atLeast int, done func() bool) {
	t.Helper()
	lives := 0
	for ; !done(); lives++ {
		require.Less(t, lives, 40, "%s does not converge", what)
		config, process := faults.StopAfter(l.config, 1)
		run.run(t, config, process.Died(), done)
		l.once(t, what)
	}
	t.Logf("%s: %d lives of one write", what, lives)
	require.GreaterOrEqual(t, lives, atLeast, what)
}

// once requires that nothing is there twice, and that what was there before is the same.
func (l *lodging) once(t *testing.T, what string) {
	t.Helper()
	seen := map[string]types.UID{}
	if role := l.role(t); role != nil {
		seen["Role"] = role.UID
	}
	for _, w := range l.works(t) {
		if l.doubled {
			break
		}
		of := w.Labels[permissionv1alpha1.LabelClusterPermission]
		require.NotContains(t, seen, of, "%s: a permission is sent twice", what)
		seen[of] = w.UID
	}
	for name, uid := range seen {
		before, was := l.made[name]
		require.True(t, !was || before == uid, "%s: %s was made twice", what, name)
		l.made[name] = uid
	}
}

// role returns the Role of the agent of accounts; nil if there is none.
func (l *lodging) role(t *testing.T) *rbacv1.Role {
	t.Helper()
	role, err := l.kube.RbacV1().Roles(lodge).Get(t.Context(), authenticationv1beta1.AgentRole, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return role
}

// works returns the works of permissions.
func (l *lodging) works(t *testing.T) []workv1.ManifestWork {
	t.Helper()
	list, err := typed.List[workv1.ManifestWork](t.Context(), l.dyn, works, lodge, metav1.ListOptions{LabelSelector: permissionv1alpha1.LabelClusterPermission})
	require.NoError(t, err)
	return list
}

// make creates an object of the cluster.
func (l *lodging) make(t *testing.T, apiVersion, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := parsed(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {namespace: %s, name: %s}\nspec: %s", apiVersion, kind, lodge, name, spec))
	var out *unstructured.Unstructured
	settled(t, func() (err error) { // the kind may not be served yet
		out, err = l.dyn.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(lodge).Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
	return out
}

// mayUse returns a function that reports whether the agent has exactly the Secrets of these accounts.
func (l *lodging) mayUse(t *testing.T, names ...string) func() bool {
	return func() bool {
		role := l.role(t)
		_, err := l.kube.RbacV1().RoleBindings(lodge).Get(t.Context(), authenticationv1beta1.AgentRole, metav1.GetOptions{})
		return err == nil && role != nil && slices.Equal(role.Rules[len(role.Rules)-1].ResourceNames, names)
	}
}

func (l *lodging) testAccounts(t *testing.T) {
	ask := func(name, spec string) {
		l.make(t, authenticationv1beta1.GroupVersion.String(), "ManagedServiceAccount", name, spec)
	}
	ask("web", "{rotation: {}}")
	l.make(t, addonv1alpha1.GroupVersion.String(), "ManagedClusterAddOn", authenticationv1beta1.AddOnName, "{}")
	l.dying(t, "the rights of an agent", accountLoops, 2, l.mayUse(t, "web"))

	ask("api", "{rotation: {}}")
	ask("short", "{rotation: {}, ttlSecondsAfterCreation: 1}")
	gone := func() bool {
		_, err := l.dyn.Resource(accounts).Namespace(lodge).Get(t.Context(), "short", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	l.dying(t, "an account that comes, and one that ends", accountLoops, 2, func() bool { return gone() && l.mayUse(t, "api", "web")() })

	addOns := l.dyn.Resource(addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")).Namespace(lodge)
	require.NoError(t, addOns.Delete(t.Context(), authenticationv1beta1.AddOnName, metav1.DeleteOptions{}))
	soon(t, func() bool { return l.role(t) == nil }, "the rights go with the add-on")
	delete(l.made, "Role")
	l.dying(t, "an add-on that goes", accountLoops, 2, func() bool {
		list, err := typed.List[authenticationv1beta1.ManagedServiceAccount](t.Context(), l.dyn, accounts, lodge, metav1.ListOptions{})
		require.NoError(t, err)
		return !slices.ContainsFunc(list, func(a authenticationv1beta1.ManagedServiceAccount) bool {
			c := apimeta.FindStatusCondition(a.Status.Conditions, authenticationv1beta1.ConditionServed)
			return c == nil || c.Reason != authenticationv1beta1.ReasonAddOnMissing
		})
	})
}

func (l *lodging) testPermissions(t *testing.T) {
	const spec = "{clusterRole: {rules: [{apiGroups: [''], resources: [%s], verbs: [get]}]}, clusterRoleBinding: {subject: {kind: User, name: u}}}"
	var made *unstructured.Unstructured
	for _, name := range []string{"one", "two"} {
		made = l.make(t, permissionv1alpha1.GroupVersion.String(), "ClusterPermission", name, fmt.Sprintf(spec, "pods"))
	}
	// sent reports whether both are sent as they are, and said to be.
	sent := func(resources ...string) func() bool {
		return func() bool {
			list, err := typed.List[permissionv1alpha1.ClusterPermission](t.Context(), l.dyn, permissions, lodge, metav1.ListOptions{})
			require.NoError(t, err)
			sent := l.works(t)
			for i := range list {
				at := slices.IndexFunc(sent, func(w workv1.ManifestWork) bool { return metav1.IsControlledBy(&w, &list[i]) })
				c := apimeta.FindStatusCondition(list[i].Status.Conditions, permissionv1alpha1.ConditionApplied)
				if at < 0 || !strings.Contains(string(sent[at].Spec.Workload.Manifests[0].Raw), resources[i]) || c == nil || c.ObservedGeneration != list[i].Generation {
					return false
				}
			}
			return len(list) == len(resources) && len(sent) == len(resources)
		}
	}
	l.dying(t, "two permissions", permissionLoop, 4, sent("pods", "pods"))

	require.NoError(t, l.permit(t, l.dyn, lodge, "two", fmt.Sprintf(spec, "services")))
	l.dying(t, "an edited permission", permissionLoop, 2, sent("pods", "services"))

	first := l.works(t)
	again := first[slices.IndexFunc(first, func(w workv1.ManifestWork) bool { return metav1.IsControlledBy(&w, made) })].DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Namespace: lodge, Name: "again", Labels: again.Labels, OwnerReferences: again.OwnerReferences}
	again.TypeMeta = metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"}
	u, err := typed.ToUnstructured(again)
	require.NoError(t, err)
	_, err = l.dyn.Resource(works).Namespace(lodge).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	l.doubled = true
	l.dying(t, "a permission that is sent twice, as after a restore", permissionLoop, 1, sent("pods", "services"))
}
