// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

func kindOf(t *testing.T, name string) kind {
	t.Helper()
	for _, k := range order {
		if k.name == name {
			return k
		}
	}
	t.Fatal(name)
	return kind{}
}

func TestOnlyWhatTheHubsUsersNeedOfRightsIsSaved(t *testing.T) {
	const fleetRules = `rules: [{apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], verbs: [get]}]`
	s := &saver{places: map[string]bool{"apps": true}, roles: map[string]bool{}}
	for _, tc := range []struct {
		name, kind, text string
		want             bool
	}{
		{"a role of people", kindClusterRole, `{metadata: {name: fleet-view}, ` + fleetRules + `}`, true},
		{"about other things", kindClusterRole, `{metadata: {name: pods}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`, false},
		{"made by the hub", kindClusterRole, `{metadata: {name: "open-cluster-management:managedcluster:c1"}, ` + fleetRules + `}`, false},
		{"made by Kubernetes", kindClusterRole, `{metadata: {name: admin, labels: {kubernetes.io/bootstrapping: rbac-defaults}}, ` + fleetRules + `}`, false},
		{"installed with the hub", kindClusterRole,
			`{metadata: {name: x, labels: {open-cluster-management.io/created-by-clustermanager: cluster-manager}}, ` + fleetRules + `}`, false},
		{"with an owner", kindRole, `{metadata: {name: r, namespace: apps, ownerReferences: [{kind: A, name: a, uid: u}]}, ` + fleetRules + `}`, false},
		{"a role in a namespace", kindRole, `{metadata: {name: r, namespace: apps}, ` + fleetRules + `}`, true},
		{"in another namespace", kindRole, `{metadata: {name: r, namespace: other}, ` + fleetRules + `}`, false},
		{"binds that role", kindClusterBinding, `{metadata: {name: b}, roleRef: {kind: ClusterRole, name: fleet-view}}`, true},
		{"binds another role", kindClusterBinding, `{metadata: {name: b}, roleRef: {kind: ClusterRole, name: pods}}`, false},
		{"binds cluster-admin", kindClusterBinding, `{metadata: {name: b}, roleRef: {kind: ClusterRole, name: cluster-admin}}`, false},
		{"binds a role of the hub", kindClusterBinding,
			`{metadata: {name: b}, roleRef: {kind: ClusterRole, name: "open-cluster-management:managedclusterset:bind:s"}}`, true},
		{"binds edit in a namespace", kindRoleBinding, `{metadata: {name: b, namespace: apps}, roleRef: {kind: ClusterRole, name: edit}}`, true},
		{"binds edit everywhere", kindClusterBinding, `{metadata: {name: b}, roleRef: {kind: ClusterRole, name: edit}}`, false},
		{"binds the namespace's role", kindRoleBinding, `{metadata: {name: b, namespace: apps}, roleRef: {kind: Role, name: r}}`, true},
		{"binds a role that is not saved", kindRoleBinding, `{metadata: {name: b, namespace: apps}, roleRef: {kind: Role, name: s}}`, false},
	} {
		require.Equal(t, tc.want, s.wanted(kindOf(t, tc.kind), object(t, tc.text)), tc.name)
	}
}

func TestGenerationsOfAStatusFollowTheObject(t *testing.T) {
	status := object(t, `{observedGeneration: 7, conditions: [{type: A, observedGeneration: 7}, {type: B, observedGeneration: 6}]}`).Object
	renumber(status, 7, 1)
	require.Equal(t, map[string]any{"observedGeneration": int64(1), "conditions": []any{
		map[string]any{"type": "A", "observedGeneration": int64(1)}, map[string]any{"type": "B"},
	}}, status)
}

func TestClustersAndPlacementsAreHeld(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"an accepted cluster": {
			`{kind: ManagedCluster, spec: {hubAcceptsClient: true}}`,
			`{kind: ManagedCluster, spec: {hubAcceptsClient: false}, metadata: {annotations: {operator.open-cluster-management.io/held-by-restore: "true"}}}`,
		},
		"a denied cluster": {`{kind: ManagedCluster, spec: {hubAcceptsClient: false}}`, `{kind: ManagedCluster, spec: {hubAcceptsClient: false}}`},
		"a placement": {`{kind: Placement, spec: {}}`, `{kind: Placement, spec: {}, metadata: {annotations: {
			cluster.open-cluster-management.io/experimental-scheduling-disable: "true", operator.open-cluster-management.io/held-by-restore: "true"}}}`},
		"a placement that people have frozen": {
			`{kind: Placement, metadata: {annotations: {cluster.open-cluster-management.io/experimental-scheduling-disable: "true"}}}`,
			`{kind: Placement, metadata: {annotations: {cluster.open-cluster-management.io/experimental-scheduling-disable: "true"}}}`,
		},
		"a work": {`{kind: ManifestWork}`, `{kind: ManifestWork}`},
	} {
		got := object(t, tc.text)
		hold(got)
		require.Equal(t, object(t, tc.want).Object, got.Object, name)
		unhold(got)
		was := object(t, tc.text)
		require.Equal(t, was.Object["spec"], got.Object["spec"], name)
		require.True(t, maps.Equal(was.GetAnnotations(), got.GetAnnotations()), name)
	}
}

func TestOwnersAreThoseOfTheNewHub(t *testing.T) {
	const addOnGroup = "addon.open-cluster-management.io"
	var o owners
	o.add(kindOf(t, kindPlacement), object(t, `{metadata: {name: p, namespace: apps, uid: new}}`))
	o.add(kindOf(t, kindWork), object(t, `{metadata: {name: p, namespace: apps, uid: other}}`))
	of := func(k string, owners ...metav1.OwnerReference) []metav1.OwnerReference {
		u := object(t, `{metadata: {name: x, namespace: apps}}`)
		u.SetOwnerReferences(owners)
		o.settle(kindOf(t, k), u)
		return u.GetOwnerReferences()
	}
	placement := metav1.OwnerReference{APIVersion: "cluster.open-cluster-management.io/v1beta1", Kind: "Placement", Name: "p", UID: "old"}
	found := placement
	found.UID = "new"
	require.Equal(t, []metav1.OwnerReference{found}, of("PlacementDecision", placement))
	foreign := placement
	foreign.Kind = "Application"
	require.Empty(t, of(kindWork, foreign), "the garbage collector would delete an object with it")
	require.Equal(t, 1, o.dropped)
	addOn := metav1.OwnerReference{APIVersion: addOnGroup + "/v1beta1", Kind: kindManagementAddOn, Name: "a", UID: "old"}
	require.Empty(t, of(kindAddOn, addOn))
	require.Len(t, o.late, 1)
	require.Equal(t, 1, o.dropped)
}
