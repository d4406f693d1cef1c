// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
)

// The messages are those of API servers and agents; test/integration/fleet plants the most
// frequent of them in a real cluster.
func TestEveryReasonOfAWorkHasItsCodeAndFix(t *testing.T) {
	edit := EditObject.On(atHub, "resource", "manifestwork", "name", "web", "namespace", "c1")
	tree := ShowTree.On(atHub, "work", "web", "cluster", "c1")
	for name, tc := range map[string]struct {
		message, owner string
		code, title    string
		fix            fleet.Fix
	}{
		"an executor without rights": {
			message: "not allowed to apply the resource configmaps, ns one, will try again in 1m0s; ServiceAccount ns/sa lacks create, get; " +
				"grant it on the managed cluster: kubectl create role sa-configmaps --verb=create,get --resource=configmaps -n ns && " +
				"kubectl create rolebinding sa-configmaps --role=sa-configmaps --serviceaccount=ns:sa -n ns",
			code: CodeWorkExecutor, title: "its executor may not apply it",
			fix: GrantExecutor.With("kind", "role", "role", "sa-configmaps", "verbs", "create,get", "resource", "configmaps", "namespace", "ns",
				"account", "ns:sa", "context", "spoke", "cluster", "c1"),
		},
		"an executor without rights on a kind that has no namespaces": {
			message: "not allowed to apply the resource nodes, a, will try again in 1m0s; ServiceAccount ns/sa lacks get; grant it on the managed cluster: " +
				"kubectl create clusterrole sa-nodes --verb=get --resource=nodes && " +
				"kubectl create clusterrolebinding sa-nodes --clusterrole=sa-nodes --serviceaccount=ns:sa",
			code: CodeWorkExecutor, title: "its executor may not apply it",
			fix: GrantExecutor.With("kind", "clusterrole", "role", "sa-nodes", "verbs", "get", "resource", "nodes", "namespace", "",
				"account", "ns:sa", "context", "spoke", "cluster", "c1"),
		},
		"an executor that would escalate": {
			message: "not allowed to apply the resource rbac.authorization.k8s.io roles, ns r, error: permission escalation, will try again in 1m0s; x",
			code:    CodeWorkExecutor, title: "its executor may not apply it", fix: tree,
		},
		"an older work": {
			message: "the older ManifestWork base declares this object with different content, which takes precedence; declare it in one work only",
			code:    CodeWorkRival, title: "the older work base declares the same object",
			fix: ShowRivals.On(atHub, "work", "web", "older", "base", "cluster", "c1"),
		},
		"a kind of a group": {
			message: `the server doesn't have a resource type "Widget" in example.com/v1: install its CustomResourceDefinition, or correct apiVersion and kind`,
			code:    CodeWorkKind, title: "the cluster has no kind Widget",
			fix: ListServed.With("group", "example.com", "context", "spoke", "cluster", "c1"),
		},
		"a kind of no group": {
			message: `the server doesn't have a resource type "Widget" in v1: install its CustomResourceDefinition, or correct apiVersion and kind`,
			code:    CodeWorkKind, title: "the cluster has no kind Widget",
			fix: ListServed.With("group", "", "context", "spoke", "cluster", "c1"),
		},
		"a kind whose API server is away": {
			message: `the server doesn't have a resource type "Widget" now: discovery of group example.com is incomplete, its API server does not answer`,
			code:    CodeWorkKind, title: "the cluster has no kind Widget",
			fix: ListServed.With("group", "", "context", "spoke", "cluster", "c1"),
		},
		"a missing namespace": {
			message: `namespaces "shop" not found; create the namespace, or declare it in the work`,
			code:    CodeWorkNamespace, title: "the cluster has no namespace shop",
			fix: CreatePlace.With("namespace", "shop", "context", "spoke", "cluster", "c1"),
		},
		"a namespace that goes": {
			message: `configmaps "a" is forbidden: unable to create new content in namespace shop because it is being terminated; it is applied later`,
			code:    CodeWorkNamespace, title: "its namespace shop is being deleted",
			fix: AwaitPlace.With("namespace", "shop", "context", "spoke", "cluster", "c1"),
		},
		"a conflict": {
			message: `Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.text`,
			code:    CodeWorkConflict, title: "another field manager owns fields of it",
			fix: TakeFields.On(atHub, "work", "web", "cluster", "c1",
				"patch", `[{"op":"add","path":"/spec/manifestConfigs/1/updateStrategy/serverSideApply","value":{"force":true}}]`),
		},
		"a conflict in a work of an add-on": {
			message: `Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.text`, owner: "addon metrics",
			code: CodeWorkConflict, title: "another field manager owns fields of it", fix: tree,
		},
		"a right that the agent lacks": {
			message: `widgets.example.com "a" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "widgets" in API group "example.com" ` +
				`in the namespace "default"; grant the agent the right`,
			code: CodeWorkForbidden, title: "the agent may not write it",
			fix: GrantAgent.With("role", "ocm-works-widgets.example.com", "resource", "widgets.example.com",
				"label", "open-cluster-management.io/aggregate-to-work", "context", "spoke", "cluster", "c1"),
		},
		"rights that the agent may not give": {
			message: `roles.rbac.authorization.k8s.io "a" is forbidden: user "x" (groups=["y"]) is attempting to grant RBAC permissions not currently held: {}`,
			code:    CodeWorkForbidden, title: "the agent may not grant what it has not", fix: tree,
		},
		"a quota": {
			message: `pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1`,
			code:    CodeWorkPolicy, title: "a policy of the cluster refuses it", fix: edit,
		},
		"a webhook": {
			message: `admission webhook "policy.example.com" denied the request: no`,
			code:    CodeWorkPolicy, title: "a policy of the cluster refuses it", fix: edit,
		},
		"annotations that are too long": {
			message: `ConfigMap "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes`,
			code:    CodeWorkSize, title: "an object of it is too large", fix: edit,
		},
		"a request that is too large": {
			message: `Request entity too large: limit is 3145728`,
			code:    CodeWorkSize, title: "an object of it is too large", fix: edit,
		},
		"an invalid field": {
			message: `Service "a" is invalid: spec.ports: Required value`,
			code:    CodeWorkInvalid, title: "an object of it is not valid", fix: edit,
		},
		"an invalid Secret": {
			message: `the API server answered Invalid (code 422) for type (FieldValueInvalid); details are withheld, they may hold content of the Secret`,
			code:    CodeWorkInvalid, title: "an object of it is not valid", fix: edit,
		},
		"an invalid field of a replica set": {
			message: `Service "a" is invalid: spec.ports: Required value`, owner: "replicaset shop/web",
			code: CodeWorkInvalid, title: "an object of it is not valid",
			fix: EditObject.On(atHub, "resource", "manifestworkreplicaset", "name", "web", "namespace", "shop"),
		},
		"an invalid field of an add-on": {
			message: `Service "a" is invalid: spec.ports: Required value`, owner: "addon metrics",
			code: CodeWorkInvalid, title: "an object of it is not valid",
			fix: fleet.ShowAddOn.On(atHub, "addon", "metrics", "cluster", "c1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			update := &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}
			apply := &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}
			full := &workv1.ManifestWork{}
			full.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{UpdateStrategy: update}, {UpdateStrategy: apply}}
			message := "configmap/a: Applied=False: Failed to apply manifest: " + tc.message
			info := &work.Info{Name: "web", Cluster: "c1", Owner: tc.owner, Message: message}
			got, ok := checkingAt().faultOf(&brokenWork{Info: info, work: full, context: "spoke"})
			require.True(t, ok)
			want := Finding{tc.code, SeverityWarning, "work web is not applied: " + tc.title, message, tc.fix}
			if diff := cmp.Diff(want, got, byContext); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, ok := checkingAt().faultOf(&brokenWork{Info: &work.Info{Message: "configmap/a: Applied=False: the server is on fire"}})
	require.False(t, ok, "what nobody knows keeps the code of all works")
}
