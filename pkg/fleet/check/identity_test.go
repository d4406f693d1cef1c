// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
)

var (
	testNow = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	testHub = &checking{o: &Options{Hub: &fleet.Cluster{Context: "hub"}}}
)

// isFalse returns a condition that was False for a long time.
func isFalse(kind, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(testNow.Add(-time.Hour)),
	}
}

// codeOf returns the code of the only finding and of its fix; "" for none.
func codeOf(t *testing.T, found []Finding) (code string, fix fleet.RemedyCode) {
	t.Helper()
	if len(found) == 0 {
		return "", ""
	}
	require.Len(t, found, 1)
	remedy, ok := found[0].Fix.(fleet.Remedy)
	require.True(t, ok)
	return found[0].Code, remedy.Code
}

func TestWhatIsFoundOfAnAccount(t *testing.T) {
	type asked = authenticationv1beta1.ManagedServiceAccount
	with := func(conditions ...metav1.Condition) func(*asked) {
		return func(a *asked) { a.Status.Conditions = conditions }
	}
	for name, tc := range map[string]struct {
		is   func(*asked)
		code string
		fix  fleet.RemedyCode
	}{
		"a new one": {
			is: func(a *asked) { a.CreationTimestamp = metav1.NewTime(testNow) },
		},
		"nobody answers": {
			is: func(*asked) {}, code: CodeAccountToken, fix: fleet.ShowAddOn,
		},
		"it is being deleted": {
			is: func(a *asked) { a.DeletionTimestamp = &metav1.Time{Time: testNow} },
		},
		"it has a token": {
			is: with(metav1.Condition{Type: "TokenReported", Status: metav1.ConditionTrue}),
		},
		"the token has ended": {
			is: with(isFalse("TokenReported", "TokenExpired", "x")), code: CodeAccountToken, fix: fleet.ShowAddOn,
		},
		"the cluster grants none": {
			is: with(isFalse("TokenReported", "TokenReportFailed", "x")), code: CodeAccountToken, fix: fleet.ShowAddOn,
		},
		"a report that is no name": {
			is:   with(isFalse("TokenReported", "TokenReportFailed", "ServiceAccount a/$(x) of the cluster was not created for a ManagedServiceAccount")),
			code: CodeAccountToken, fix: fleet.ShowAddOn,
		},
		"a report about another account": {
			is:   with(isFalse("TokenReported", "TokenReportFailed", "ServiceAccount a/admin of the cluster was not created for a ManagedServiceAccount")),
			code: CodeAccountToken, fix: fleet.ShowAddOn,
		},
		"no cluster": {
			is: with(isFalse("Served", "NoManagedCluster", "x")), code: CodeAccountServed, fix: naming.ListClusters,
		},
		"no rights": {
			is: with(isFalse("Served", "RightsMissing", "x")), code: CodeAccountServed, fix: fleet.ShowAddOn,
		},
		"a limited life without the gate": {
			is: with(isFalse("Served", "LifetimeNotEnabled", "x")), code: CodeAccountServed, fix: work.OpenGate,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asked{}
			a.Name, a.Namespace, a.Spec.Rotation.Validity.Duration = "web", "c1", time.Hour
			tc.is(a)
			code, fix := codeOf(t, testHub.account(&identityFleet{now: testNow}, a))
			require.Equal(t, tc.code, code)
			require.Equal(t, tc.fix, fix)
		})
	}
}

func TestWhatIsFoundOfAPermission(t *testing.T) {
	refused := func(message string) *permissionv1alpha1.ResourceStatus {
		return &permissionv1alpha1.ResourceStatus{RoleBindings: []permissionv1alpha1.NamespacedResource{
			{Name: "a", Namespace: "n", Conditions: []metav1.Condition{isFalse("Applied", "FailedApplyManifest", message)}},
			{Name: "b", Namespace: "n", Conditions: []metav1.Condition{isFalse("Applied", "FailedGetManifestCondition", message)}},
		}}
	}
	pending := isFalse("AppliedRBACManifestWork", "ApplyRBACManifestWorkNotComplete", "x")
	fresh := pending
	fresh.LastTransitionTime = metav1.NewTime(testNow)
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		resources  *permissionv1alpha1.ResourceStatus
		code       string
		fix        fleet.RemedyCode
	}{
		"no loop looks at it": {
			code: CodePermissionSpec, fix: work.OpenGate,
		},
		"all is applied": {
			conditions: []metav1.Condition{{Type: "AppliedRBACManifestWork", Status: metav1.ConditionTrue}},
		},
		"no cluster": {
			conditions: []metav1.Condition{isFalse("Validation", "FailedValidationNotInManagedClusterNamespace", "x")},
			code:       CodePermissionSpec, fix: naming.ListClusters,
		},
		"no binding": {
			conditions: []metav1.Condition{isFalse("Validation", "FailedValidationNoBindingsDefined", "x")},
			code:       CodePermissionSpec, fix: EditObject,
		},
		"it is on its way": {
			conditions: []metav1.Condition{fresh},
		},
		"its agent does not answer": {
			conditions: []metav1.Condition{pending}, code: CodePermissionRefused, fix: CheckCluster,
		},
		"the agent lacks rights": {
			conditions: []metav1.Condition{pending}, code: CodePermissionRefused, fix: EditObject,
			resources: refused("is forbidden: attempting to grant RBAC permissions not currently held"),
		},
		"the agent may not write bindings": {
			conditions: []metav1.Condition{pending}, code: CodePermissionRefused, fix: GrantAgent,
			resources: refused(`x is forbidden: User "agent" cannot create resource "rolebindings" in API group "rbac.authorization.k8s.io"`),
		},
		"another role": {
			conditions: []metav1.Condition{pending}, code: CodePermissionRefused, fix: DropBinding, resources: refused("cannot change roleRef"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &permissionv1alpha1.ClusterPermission{}
			p.Name, p.Namespace = "readers", "c1"
			p.Status.Conditions, p.Status.ResourceStatus = tc.conditions, tc.resources
			found := testHub.permission(&identityFleet{now: testNow}, p)
			code, fix := codeOf(t, found)
			require.Equal(t, tc.code, code)
			require.Equal(t, tc.fix, fix)
			if tc.resources != nil {
				require.Equal(t, "the cluster refuses 1 of its 2 objects", found[0].Title)
			}
		})
	}
}

func TestWhatOfManyIsTold(t *testing.T) {
	var many []Finding
	for range maxOfCode + 3 {
		many = append(many, Finding{Code: CodePermissionRefused, Title: "x"}, Finding{Code: CodeAccountToken, Title: "x"})
	}
	got := testHub.foldIdentities(many)
	require.Len(t, got, 2*maxOfCode+2)
	require.Equal(t, "so are 3 more", got[2*maxOfCode].Title)
	require.Equal(t, "managedserviceaccounts.authentication.open-cluster-management.io -A", got[2*maxOfCode].Fix.(fleet.Remedy).Values["resource"])
	require.Equal(t, "clusterpermissions.rbac.open-cluster-management.io -A", got[2*maxOfCode+1].Fix.(fleet.Remedy).Values["resource"])
}

func TestWhatIsFoundOfATunnel(t *testing.T) {
	for name, tc := range map[string]struct {
		status, tunnel, code string
		fix                  fleet.RemedyCode
	}{
		"the hub leads nowhere": {
			status: cluster.Available,
		},
		"there is one": {
			status: cluster.Available, tunnel: cluster.Connected,
		},
		"it is lost": {
			status: cluster.Available, tunnel: cluster.Lost, code: CodeClusterTunnel, fix: CheckSpoke,
		},
		"there was none": {
			status: cluster.Available, tunnel: cluster.Never, code: CodeClusterTunnel, fix: proxy.OpenAgent,
		},
		"the cluster is away": {
			status: cluster.Unknown, tunnel: cluster.Lost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{}
			mc.Status.Conditions = []metav1.Condition{isFalse(connectv1alpha1.ConditionTunnelConnected, "x", "since then")}
			found := testHub.tunnel(cluster.Info{Name: "c1", Status: tc.status, Tunnel: tc.tunnel}, mc)
			code, fix := codeOf(t, found)
			require.Equal(t, tc.code, code)
			require.Equal(t, tc.fix, fix)
			if code != "" {
				require.Equal(t, "since then", found[0].Cause)
			}
		})
	}
}
