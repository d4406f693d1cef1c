// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	permissions = permissionv1alpha1.GroupVersion.WithResource(permissionv1alpha1.ResourceClusterPermissions)
	accounts    = schema.GroupVersionResource{
		Group: permissionv1alpha1.GroupManagedServiceAccount, Version: permissionv1alpha1.VersionManagedServiceAccount,
		Resource: permissionv1alpha1.ResourceManagedServiceAccounts,
	}
)

// TestClusterPermissions switches the gate on one hub, because the gate applies to the whole
// hub. The test reports what an agent would.
func TestClusterPermissions(t *testing.T) {
	t.Parallel()
	s := ownHub(t)
	pid := hubPID(t, s)
	_, err := s.dyn.Resource(definitions).Get(t.Context(), crd.ClusterPermissions, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "without the gate there is no such API")

	t.Run("beside another controller nothing is sent", s.testRival)
	t.Run("a binding and a role become a work, and its status is told", s.testPermissionFollows)
	t.Run("roles that are only referred to are looked at", s.testPermissionValidates)
	t.Run("a namespace becomes that of a cluster", s.testPermissionAwaitsCluster)
	t.Run("selectors follow the namespaces of the hub", s.testPermissionSelects)
	t.Run("accounts follow their add-on", s.testPermissionAccounts)
	t.Run("mistakes and further rights are refused", s.testPermissionAdmission)
	t.Run("what others made is taken over, or left alone", s.testPermissionTakesOver)
	require.Equal(t, pid, hubPID(t, s), "it was the same process all the time")
	t.Run("the API goes with the hub", s.testPermissionHubGoes)
}

// permissionGate switches ClusterPermission.
func (s *scene) permissionGate(t testing.TB, mode string) {
	t.Helper()
	body := `{"spec":{"workConfiguration":{"featureGates":[{"feature":"ClusterPermission","mode":"` + mode + `"}]}}}`
	_, err := s.dyn.Resource(managers).Patch(t.Context(), hub.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

// awaitSent waits for what the ClusterManager reports about ClusterPermissions; an empty status
// means that it reports nothing.
func (s *scene) awaitSent(t testing.TB, status metav1.ConditionStatus, reason string) {
	t.Helper()
	var last *metav1.Condition
	soon(t, func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), s.dyn, managers, "", hub.Name)
		require.NoError(t, err)
		last = apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionClusterPermissionsKept)
		if last == nil {
			return status == ""
		}
		return last.Status == status && last.Reason == reason
	}, "%s %s: %+v", status, reason, &last)
	s.awaitHub(t)
}

// permit creates a ClusterPermission with this spec, or replaces the spec.
func (s *scene) permit(t testing.TB, dyn dynamic.Interface, namespace, name, spec string) error {
	t.Helper()
	u := parsed(t, "apiVersion: rbac.open-cluster-management.io/v1alpha1\nkind: ClusterPermission\nspec: "+spec)
	u.SetNamespace(namespace)
	u.SetName(name)
	api := dyn.Resource(permissions).Namespace(namespace)
	_, err := api.Create(t.Context(), u, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The hub writes it as well.
	eventually(func() bool {
		var live *unstructured.Unstructured
		if live, err = api.Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			live.Object["spec"] = u.Object["spec"]
			_, err = api.Update(t.Context(), live, metav1.UpdateOptions{})
		}
		return !apierrors.IsConflict(err)
	})
	return err
}

// awaitPermission waits until a ClusterPermission has a condition for its generation.
func (s *scene) awaitPermission(t testing.TB, namespace, name, kind, status, reason, message string) *permissionv1alpha1.ClusterPermission {
	t.Helper()
	var last *permissionv1alpha1.ClusterPermission
	if !eventually(func() bool {
		cp, err := typed.Get[permissionv1alpha1.ClusterPermission](t.Context(), s.dyn, permissions, namespace, name)
		require.NoError(t, err)
		last = cp
		c := apimeta.FindStatusCondition(cp.Status.Conditions, kind)
		return c != nil && string(c.Status) == status && c.Reason == reason && c.ObservedGeneration == cp.Generation && strings.Contains(c.Message, message)
	}) {
		raw, _ := json.MarshalIndent(last, "", " ")
		t.Errorf("%s/%s: want %s %s %s %q: %s", namespace, name, kind, status, reason, message, raw)
		s.logs(t)
		t.FailNow()
	}
	return last
}

// theWork waits until the work of a ClusterPermission holds exactly these objects.
func (s *scene) theWork(t testing.TB, namespace, name string, want ...string) *workv1.ManifestWork {
	t.Helper()
	var last *workv1.ManifestWork
	var have []string
	soon(t, func() bool {
		cp, err := typed.Get[permissionv1alpha1.ClusterPermission](t.Context(), s.dyn, permissions, namespace, name)
		require.NoError(t, err)
		last, err = typed.Get[workv1.ManifestWork](t.Context(), s.dyn, works, namespace, name+"-"+string(cp.UID[:5]))
		if err != nil {
			return len(want) == 0 && apierrors.IsNotFound(err)
		}
		require.True(t, metav1.IsControlledBy(last, cp))
		have = nil
		for _, m := range last.Spec.Workload.Manifests {
			u := &unstructured.Unstructured{}
			require.NoError(t, u.UnmarshalJSON(m.Raw))
			line := u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
			subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
			for _, subject := range subjects {
				m, _ := subject.(map[string]any)
				line += fmt.Sprint(" + ", m["kind"], " ", m["name"])
				if m["namespace"] != nil {
					line += fmt.Sprint(" of ", m["namespace"])
				}
			}
			have = append(have, line)
		}
		return slices.Equal(have, want)
	}, "work of %s/%s: %v", namespace, name, &have)
	return last
}

// reports writes the status of a work as its agent would. missing are objects, as KIND
// NAMESPACE/NAME, that are not on the cluster.
func (s *scene) reports(t testing.TB, w *workv1.ManifestWork, missing ...string) {
	t.Helper()
	condition := func(kind string, ok bool) metav1.Condition {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: "Reported", Message: saidOf(w), ObservedGeneration: w.Generation,
			LastTransitionTime: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		}
		if ok {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	status := workv1.ManifestWorkStatus{Conditions: []metav1.Condition{condition(workv1.ConditionApplied, true)}}
	for i, m := range w.Spec.Workload.Manifests {
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON(m.Raw))
		there := !slices.Contains(missing, u.GetKind()+" "+strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/"))
		status.ResourceStatus.Manifests = append(status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{
				Ordinal: int32(i), Group: rbacv1.GroupName, Version: "v1", Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
			},
			Conditions: []metav1.Condition{condition(workv1.ConditionApplied, true), condition(workv1.ConditionAvailable, there)},
		})
	}
	body, err := json.Marshal(map[string]any{"status": status})
	require.NoError(t, err)
	_, err = s.dyn.Resource(works).Namespace(w.Namespace).Patch(t.Context(), w.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// saidOf is the message of what reports writes: an older report is not taken for it.
func saidOf(w *workv1.ManifestWork) string {
	return fmt.Sprintf("as the agent says of generation %d", w.Generation)
}

// place makes a cluster with its namespace.
func (s *scene) place(t testing.TB, name string) {
	t.Helper()
	s.member(t, name, nil)
	s.accept(t, name, true)
	soon(t, func() bool {
		_, err := s.kube.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		return err == nil
	}, "namespace %s", name)
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: open-cluster-management, name: cluster-permission}
spec:
  replicas: 1
  selector: {matchLabels: {app: rival}}
  template:
    metadata: {labels: {app: rival}}
    spec:
      nodeSelector: {no-node: has-it}
      containers: [{name: c, image: example.com/never:1}]`

const (
	reader   = "{clusterRole: {rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}, clusterRoleBinding: {subject: {kind: User, name: u}}}"
	awaited  = permissionv1alpha1.ReasonApplyPending
	applied  = permissionv1alpha1.ConditionApplied
	validity = permissionv1alpha1.ConditionValidation
)

func (s *scene) testRival(t *testing.T) {
	s.place(t, "rivals")
	api := s.dyn.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(hub.Namespace)
	_, err := api.Create(t.Context(), parsed(t, deployment), metav1.CreateOptions{})
	require.NoError(t, err)
	s.permissionGate(t, "Enable")
	s.awaitSent(t, metav1.ConditionFalse, operatorv1.ReasonClusterPermissionsElsewhere)
	settled(t, func() error { return s.permit(t, s.dyn, "rivals", "p", reader) })
	cp, err := typed.Get[permissionv1alpha1.ClusterPermission](t.Context(), s.dyn, permissions, "rivals", "p")
	require.NoError(t, err)
	require.Empty(t, cp.Status.Conditions)
	s.theWork(t, "rivals", "p")

	require.NoError(t, api.Delete(t.Context(), "cluster-permission", metav1.DeleteOptions{}))
	s.awaitSent(t, metav1.ConditionTrue, operatorv1.ReasonClusterPermissionsServed)
	s.theWork(t, "rivals", "p", "ClusterRole p", "ClusterRoleBinding p + User u")
}

func (s *scene) testPermissionFollows(t *testing.T) {
	s.place(t, "follows")
	require.NoError(t, s.permit(t, s.dyn, "follows", "p", reader))
	w := s.theWork(t, "follows", "p", "ClusterRole p", "ClusterRoleBinding p + User u")
	cp := s.awaitPermission(t, "follows", "p", applied, "False", awaited, "kubectl get manifestworks -n follows "+w.Name)
	require.Equal(t, permissionv1alpha1.ReasonManifestUnknown, cp.Status.ResourceStatus.ClusterRoles[0].Conditions[0].Reason)
	s.reports(t, w)
	cp = s.awaitPermission(t, "follows", "p", applied, "True", "Reported", saidOf(w))
	s.awaitPermission(t, "follows", "p", validity, "True", permissionv1alpha1.ReasonValidated, "")
	require.Equal(t, permissionv1alpha1.ReasonManifestApplied, cp.Status.ResourceStatus.ClusterRoleBindings[0].Conditions[0].Reason)

	// An edit, and an object that is named no more.
	require.NoError(t, s.permit(t, s.dyn, "follows", "p", "{roleBindings: [{namespace: a, roleRef: {kind: ClusterRole}, subject: {kind: User, name: v}}]}"))
	edited := s.theWork(t, "follows", "p", "RoleBinding a/p + User v")
	require.Equal(t, w.UID, edited.UID)
	s.awaitPermission(t, "follows", "p", applied, "False", awaited, "")
	s.reports(t, edited)
	s.awaitPermission(t, "follows", "p", applied, "True", "Reported", saidOf(edited))

	// Somebody changes the work.
	_, err := s.dyn.Resource(works).Namespace("follows").Patch(t.Context(), w.Name, types.MergePatchType,
		[]byte(`{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"m"}}]}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	edited = s.theWork(t, "follows", "p", "RoleBinding a/p + User v")
	s.reports(t, edited)
	before := s.awaitPermission(t, "follows", "p", applied, "True", "Reported", saidOf(edited))

	// At rest nothing is written, also by a hub whose loops begin again.
	edited, err = typed.Get[workv1.ManifestWork](t.Context(), s.dyn, works, "follows", w.Name)
	require.NoError(t, err)
	s.permissionGate(t, "Disable")
	s.awaitSent(t, "", "")
	s.permissionGate(t, "Enable")
	s.awaitSent(t, metav1.ConditionTrue, operatorv1.ReasonClusterPermissionsServed)
	settled(t, func() error { return s.permit(t, s.dyn, "follows", "other", reader) })
	s.theWork(t, "follows", "other", "ClusterRole other", "ClusterRoleBinding other + User u")
	after, err := typed.Get[permissionv1alpha1.ClusterPermission](t.Context(), s.dyn, permissions, "follows", "p")
	require.NoError(t, err)
	require.Equal(t, before.ResourceVersion, after.ResourceVersion)
	same, err := typed.Get[workv1.ManifestWork](t.Context(), s.dyn, works, "follows", w.Name)
	require.NoError(t, err)
	require.Equal(t, edited.ResourceVersion, same.ResourceVersion)

	require.NoError(t, s.dyn.Resource(permissions).Namespace("follows").Delete(t.Context(), "p", metav1.DeleteOptions{}))
	soon(t, func() bool {
		_, err := s.dyn.Resource(works).Namespace("follows").Get(t.Context(), w.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "the work stays")
}

func (s *scene) testPermissionValidates(t *testing.T) {
	s.place(t, "validates")
	const ref = "{apiGroup: rbac.authorization.k8s.io, kind: Role, name: theirs}"
	require.NoError(t, s.permit(t, s.dyn, "validates", "p", "{validate: true, roles: [{namespace: a, rules: []}], "+
		"roleBindings: [{namespace: a, roleRef: {kind: Role}, subject: {kind: User, name: u}}, "+
		"{name: b, namespace: a, roleRef: "+ref+", subject: {kind: User, name: u}}]}"))
	w := s.theWork(t, "validates", "p", "Role a/p", "RoleBinding a/p + User u", "RoleBinding a/b + User u", "Role a/theirs")
	require.Len(t, w.Spec.ManifestConfigs, 1)
	require.Equal(t, workv1.UpdateStrategyTypeReadOnly, w.Spec.ManifestConfigs[0].UpdateStrategy.Type)
	s.reports(t, w, "Role a/theirs")
	s.awaitPermission(t, "validates", "p", permissionv1alpha1.ConditionValidateRolesExist, "False", permissionv1alpha1.ReasonRolesNotFound, "a/theirs")
	s.awaitPermission(t, "validates", "p", permissionv1alpha1.ConditionValidateClusterRolesExist, "True", permissionv1alpha1.ReasonAllClusterRolesFound, "")
	s.reports(t, w)
	s.awaitPermission(t, "validates", "p", permissionv1alpha1.ConditionValidateRolesExist, "True", permissionv1alpha1.ReasonAllRolesFound, "")
}

func (s *scene) testPermissionAwaitsCluster(t *testing.T) {
	s.open(t, "late")
	require.NoError(t, s.permit(t, s.dyn, "late", "p", "{clusterRole: {rules: []}}"))
	s.awaitPermission(t, "late", "p", validity, "False", permissionv1alpha1.ReasonNoBindings, "no binding is defined")
	require.NoError(t, s.permit(t, s.dyn, "late", "p", reader))
	s.awaitPermission(t, "late", "p", validity, "False", permissionv1alpha1.ReasonNoCluster, "there is no ManagedCluster late")
	s.member(t, "late", nil)
	s.awaitPermission(t, "late", "p", validity, "True", permissionv1alpha1.ReasonValidated, "")
	s.theWork(t, "late", "p", "ClusterRole p", "ClusterRoleBinding p + User u")
}

func (s *scene) testPermissionSelects(t *testing.T) {
	s.place(t, "selects")
	const selector = "namespaceSelector: {matchLabels: {permit: here}}"
	require.NoError(t, s.permit(t, s.dyn, "selects", "p", "{roles: [{"+selector+", rules: []}], "+
		"roleBindings: [{"+selector+", roleRef: {kind: Role}, subject: {kind: User, name: u}}]}"))
	s.awaitPermission(t, "selects", "p", applied, "False", permissionv1alpha1.ReasonBuildFailed,
		"spec.roles[0].namespaceSelector: selects no namespace of the hub")
	s.open(t, "shop")
	label := func(name, body string) {
		patch := []byte(`{"metadata":{"labels":{"permit":` + body + `}}}`)
		_, err := s.kube.CoreV1().Namespaces().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	label("shop", `"here"`)
	s.theWork(t, "selects", "p", "Role shop/p", "RoleBinding shop/p + User u")
	s.open(t, "bar")
	label("bar", `"here"`)
	s.theWork(t, "selects", "p", "Role bar/p", "Role shop/p", "RoleBinding bar/p + User u", "RoleBinding shop/p + User u")
	label("shop", "null")
	s.theWork(t, "selects", "p", "Role bar/p", "RoleBinding bar/p + User u")
}

// anyAccount is a definition of ManagedServiceAccounts with nothing but their existence.
const anyAccount = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: managedserviceaccounts.authentication.open-cluster-management.io}
spec:
  group: authentication.open-cluster-management.io
  scope: Namespaced
  names: {kind: ManagedServiceAccount, listKind: ManagedServiceAccountList, plural: managedserviceaccounts, singular: managedserviceaccount}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`

func (s *scene) testPermissionAccounts(t *testing.T) {
	s.place(t, "accounts")
	require.NoError(t, s.permit(t, s.dyn, "accounts", "p", "{clusterRole: {rules: []}, clusterRoleBinding: {subject: "+
		"{apiGroup: authentication.open-cluster-management.io, kind: ManagedServiceAccount, name: argo}}}"))
	missing := func(what string) {
		t.Helper()
		s.awaitPermission(t, "accounts", "p", applied, "False", permissionv1alpha1.ReasonBuildFailed, what)
	}
	missing("spec.clusterRoleBinding: there is no ManagedServiceAccount argo in namespace accounts")
	_, err := s.dyn.Resource(definitions).Create(t.Context(), parsed(t, anyAccount), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	settled(t, func() error {
		u := parsed(t, "apiVersion: authentication.open-cluster-management.io/v1beta1\nkind: ManagedServiceAccount\n"+
			"metadata: {namespace: accounts, name: argo}\nspec: {rotation: {}}")
		_, err := s.dyn.Resource(accounts).Namespace("accounts").Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
	missing("add-on managed-serviceaccount is not enabled for the cluster")
	addons := s.dyn.Resource(addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")).Namespace("accounts")
	_, err = addons.Create(t.Context(), parsed(t, "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ManagedClusterAddOn\n"+
		"metadata: {namespace: accounts, name: managed-serviceaccount}\nspec: {installNamespace: agents}"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.theWork(t, "accounts", "p", "ClusterRole p", "ClusterRoleBinding p + ServiceAccount argo of agents")
	_, err = addons.Patch(t.Context(), "managed-serviceaccount", types.MergePatchType, []byte(`{"status":{"namespace":"moved"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	s.theWork(t, "accounts", "p", "ClusterRole p", "ClusterRoleBinding p + ServiceAccount argo of moved")
	require.NoError(t, s.dyn.Resource(accounts).Namespace("accounts").Delete(t.Context(), "argo", metav1.DeleteOptions{}))
	missing("; the rights that were sent before stay")
	s.theWork(t, "accounts", "p", "ClusterRole p", "ClusterRoleBinding p + ServiceAccount argo of moved")
}

func (s *scene) testPermissionAdmission(t *testing.T) {
	s.place(t, "checks")
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{permissionv1alpha1.GroupName}, Resources: []string{permissionv1alpha1.ResourceClusterPermissions}, Verbs: verbs}
	}
	giver, administrator := s.user(t, "giver", rule("create", "get", "update")), s.user(t, "giver-of-all", rule("create", "get", "update", "escalate"))
	settled(t, func() error { return s.permit(t, giver, "checks", "plain", reader) })
	wild := strings.ReplaceAll(reader, "[get]", "['*']")
	for name, spec := range map[string]string{
		"wild": wild,
		"root": "{clusterRoleBinding: {roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subject: {kind: User, name: u}}}",
	} {
		err := s.permit(t, giver, "checks", name, spec)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "needs the verb escalate on clusterpermissions in namespace checks")
		settled(t, func() error { return s.permit(t, administrator, "checks", name, spec) })
	}
	require.True(t, apierrors.IsForbidden(s.permit(t, giver, "checks", "plain", wild)))
	two := "{roleBindings: [{namespace: a, roleRef: {kind: Role}, subject: {kind: User, name: u}}, " +
		"{namespace: a, roleRef: {kind: Role}, subject: {kind: User, name: v}}]}"
	err := s.permit(t, giver, "checks", "two", two)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "spec.roleBindings[1]: makes the same RoleBinding a/two as spec.roleBindings[0]; set spec.roleBindings[1].name to another one")
	err = s.permit(t, giver, "checks", "half", "{roleBindings: [{namespace: a, roleRef: {kind: ClusterRole, name: view}, subject: {kind: User, name: u}}]}")
	require.ErrorContains(t, err, "spec.roleBindings[0].roleRef.apiGroup: is empty beside name")
	require.True(t, apierrors.IsInvalid(s.permit(t, giver, "checks", "none", "{clusterRoleBinding: {}}")), "the definition itself wants a subject")
}

func (s *scene) testPermissionTakesOver(t *testing.T) {
	s.place(t, "takes")
	s.permissionGate(t, "Disable")
	s.awaitSent(t, "", "")
	for name, spec := range map[string]string{
		"ours": reader, "theirs": reader,
		"half": "{roleBindings: [{namespace: a, roleRef: {kind: ClusterRole, name: view}, subject: {kind: User, name: u}}]}",
	} {
		settled(t, func() error { return s.permit(t, s.dyn, "takes", name, spec) })
	}
	settled(t, func() error { return s.permit(t, s.dyn, "takes", "restored", reader) })
	restored := parsed(t, "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\n"+
		"metadata: {namespace: takes, name: restored-00000, labels: {rbac.open-cluster-management.io/clusterpermission: 00000-of-the-hub-before}}\n"+
		"spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: m}}]}}")
	restored, err := s.dyn.Resource(works).Namespace("takes").Create(t.Context(), restored, metav1.CreateOptions{})
	require.NoError(t, err)
	uids := map[string]types.UID{}
	for _, name := range []string{"ours", "theirs"} {
		cp, err := typed.Get[permissionv1alpha1.ClusterPermission](t.Context(), s.dyn, permissions, "takes", name)
		require.NoError(t, err)
		w := parsed(t, "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\n"+
			"spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: m}}]}}")
		w.SetNamespace("takes")
		w.SetName(name + "-" + string(cp.UID[:5]))
		if name == "ours" {
			w.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(cp, permissionv1alpha1.GroupVersion.WithKind("ClusterPermission"))})
		}
		live, err := s.dyn.Resource(works).Namespace("takes").Create(t.Context(), w, metav1.CreateOptions{FieldManager: "cluster-permission"})
		require.NoError(t, err)
		uids[name] = live.GetUID()
	}
	s.permissionGate(t, "Enable")
	s.awaitSent(t, metav1.ConditionTrue, operatorv1.ReasonClusterPermissionsServed)
	w := s.theWork(t, "takes", "ours", "ClusterRole ours", "ClusterRoleBinding ours + User u")
	require.Equal(t, uids["ours"], w.UID, "it is the same work, so that nothing leaves the cluster")
	require.NotEmpty(t, w.Labels[permissionv1alpha1.LabelClusterPermission])
	soon(t, func() bool {
		live, err := s.dyn.Resource(works).Namespace("takes").Get(t.Context(), restored.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, restored.GetUID(), live.GetUID())
		owner := metav1.GetControllerOf(live)
		return owner != nil && owner.Name == "restored" && live.GetLabels()[permissionv1alpha1.LabelClusterPermission] == string(owner.UID)
	}, "it is not taken over")
	s.theWork(t, "takes", "restored")
	cp := s.awaitPermission(t, "takes", "theirs", applied, "False", permissionv1alpha1.ReasonBuildFailed, "is not of this ClusterPermission; delete it")
	left, err := typed.Get[workv1.ManifestWork](t.Context(), s.dyn, works, "takes", "theirs-"+string(cp.UID[:5]))
	require.NoError(t, err)
	require.EqualValues(t, 1, left.Generation)
	s.awaitPermission(t, "takes", "half", applied, "False", permissionv1alpha1.ReasonBuildFailed, "spec.roleBindings[0].roleRef.apiGroup: is empty beside name")
	require.NoError(t, s.dyn.Resource(works).Namespace("takes").Delete(t.Context(), left.Name, metav1.DeleteOptions{}))
}

func (s *scene) testPermissionHubGoes(t *testing.T) {
	live, err := s.dyn.Resource(definitions).Get(t.Context(), crd.ClusterPermissions, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, hub.Name, live.GetLabels()[operatorv1.LabelCreatedByClusterManager])
	require.NoError(t, s.dyn.Resource(managers).Delete(context.Background(), hub.Name, metav1.DeleteOptions{}))
	soon(t, func() bool { return s.absent(t) }, "the hub does not go")
	_, err = s.dyn.Resource(definitions).Get(t.Context(), crd.ClusterPermissions, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	soon(t, func() bool { // the API server stops to serve what it has removed
		_, err = s.dyn.Resource(clusters).List(t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	}, "%s: %v", clusterv1.GroupName, &err)
}
