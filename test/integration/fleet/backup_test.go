// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestTheBackUpGuide runs every block of docs/guides/backup.md with the real processes of hub and
// agents. The hub has works, a replica set and an add-on, and loses its store twice: it comes back
// at its address with the same certificate authority, then with another one. Not one object on the
// clusters is written.
func TestTheBackUpGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/backup.md")
	require.NoError(t, err)
	agent := harness.Program(t, "controllers/ocm-agent")
	hub := harness.WithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	spokes := []*harness.Cluster{
		harness.FreshWithNode(t, "cluster1", map[string]string{"ocm-agent": agent}), harness.FreshWithNode(t, "cluster2", map[string]string{"ocm-agent": agent}),
	}
	kubeconfig(t, hub, spokes[0], spokes[1])
	file := filepath.Join(t.TempDir(), "hub.jsonl")
	does := func(name, line string) {
		t.Helper()
		stdin := strings.ReplaceAll(configMap, "greeting", "greeting-of-"+name)
		require.Zero(t, runWith(t, stdin, append(strings.Fields(line), "--context", "hub")...).code, line)
	}
	does("", "hub init")
	for _, c := range spokes {
		require.Zero(t, run(t, "join", c.Name, "--context", c.Name, "--hub-context", "hub", "--accept").code)
	}
	does("", "clusterset create fleet")
	does("", "clusterset add fleet -c cluster1,cluster2")
	typeLine(t, "kubectl create namespace apps --context hub")
	does("", "clusterset bind fleet -n apps")
	does("", "placement create everywhere -n apps")
	does("one", "work apply one -f - -c cluster1 --wait")
	does("set", "work apply set -f - --placement apps/everywhere --wait")
	does("addon", "addon create hello -f -")
	does("", "addon enable hello --placement apps/everywhere")
	available := func() {
		for _, c := range spokes {
			until(t, func() error { return isAvailable(t, hub, c.Name) })
		}
	}
	available()
	before := versions(t, spokes)
	require.Len(t, before, 5)

	var sections []string
	for _, section := range strings.Split(string(guide), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(text, -1)
		if len(blocks) == 0 {
			continue
		}
		sections = append(sections, name)
		if anew := strings.HasSuffix(name, "another CA or address"); strings.HasPrefix(name, "The hub is lost") {
			require.NoError(t, hub.Playground.Replace(t.Context(), anew))
			hub.Config = hub.Playground.Config
			kubeconfig(t, hub, spokes[0], spokes[1])
		}
		for line := range strings.Lines(blocks[0][1]) {
			typeLine(t, strings.Replace(strings.TrimSpace(line), "hub.jsonl", file, 1))
		}
		for _, c := range spokes {
			until(t, func() error { return areApplied(t, hub, c.Name) })
		}
		available()
		require.Equal(t, before, versions(t, spokes), name)
	}
	require.Equal(t, []string{"Save", "The hub is lost: restore it with the same CA", "The hub is lost: restore it with another CA or address"}, sections)

	// The hub still decides: what a placement no longer selects leaves its cluster.
	does("", "clusterset drop fleet -c cluster2 --yes")
	until(t, func() error {
		if now := versions(t, spokes); now["cluster2/greeting-of-set"] != "" || now["cluster2/greeting-of-addon"] != "" {
			return errors.New("it has not left the cluster")
		}
		return nil
	})
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "others can read it")
}

// versions returns UID and resourceVersion of everything that works and add-ons have applied.
func versions(t *testing.T, spokes []*harness.Cluster) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range spokes {
		list, err := c.Dynamic(t).Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, item := range list.Items {
			if strings.HasPrefix(item.GetName(), "greeting") {
				out[c.Name+"/"+item.GetName()] = string(item.GetUID()) + " " + item.GetResourceVersion()
			}
		}
	}
	return out
}

// areApplied returns which work of a cluster its agent has not reported as applied.
func areApplied(t *testing.T, hub *harness.Cluster, cluster string) error {
	t.Helper()
	list, err := hub.Dynamic(t).Resource(works).Namespace(cluster).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) < 2 {
		return fmt.Errorf("works are missing on %s: %w", cluster, err)
	}
	for i := range list.Items {
		if !fleet.ConditionTrue(&list.Items[i], "Applied") {
			return fmt.Errorf("%s is not applied", fleet.Describe(&list.Items[i]))
		}
	}
	return nil
}

// isAvailable returns why the add-on is not available on a cluster.
func isAvailable(t *testing.T, hub *harness.Cluster, cluster string) error {
	t.Helper()
	addOn, err := hub.Dynamic(t).Resource(instances).Namespace(cluster).Get(t.Context(), "hello", metav1.GetOptions{})
	if err == nil && !fleet.ConditionTrue(addOn, "Available") {
		err = fmt.Errorf("add-on hello on %s: %v", cluster, addOn.Object["status"])
	}
	return err
}

// hubObjects are what a small hub has: each owner comes before what it owns, except that the add-on
// of the cluster is restored before its ClusterManagementAddOn. An add-on owns the work, and a ConfigMap,
// which no backup holds, the ManifestWorkReplicaSet.
const hubObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: c1, labels: {open-cluster-management.io/cluster-name: c1}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: apps, labels: {team: web}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: apps}, stringData: {password: swordfish}}
---
{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: apps}, stringData: {password: trout}}
---
{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: c1, labels: {env: prod}, annotations: {note: mine}},
  spec: {hubAcceptsClient: true, taints: [{key: a, value: b, effect: NoSelect}]},
  status: {conditions: [{type: ManagedClusterConditionAvailable, status: "True", reason: A, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}
---
{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: c2}, spec: {hubAcceptsClient: false}}
---
{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: p, namespace: apps}, spec: {}}
---
{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: PlacementDecision, metadata: {name: p-decision-1, namespace: apps, OWNER: Placement},
  status: {decisions: [{clusterName: c1, reason: ""}]}}
---
{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn, metadata: {name: a}, spec: {installStrategy: {type: Manual}}}
---
{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ManagedClusterAddOn, metadata: {name: a, namespace: c1, OWNER: ClusterManagementAddOn}, spec: {},
  status: {namespace: agents}}
---
{apiVersion: authentication.open-cluster-management.io/v1beta1, kind: ManagedServiceAccount, metadata: {name: reader, namespace: c1}, spec: {rotation: {}}}
---
{apiVersion: rbac.open-cluster-management.io/v1alpha1, kind: ClusterPermission, metadata: {name: readers, namespace: c1},
  spec: {clusterRole: {rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}, clusterRoleBinding: {subject: {kind: User, name: ann}}}}
---
{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: w, namespace: c1, OWNER: ManagedClusterAddOn},
  spec: {workload: {manifests: [{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, stringData: {a: b}}]}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: left, namespace: apps}}
---
{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet, metadata: {name: s, namespace: apps, OWNER: ConfigMap},
  spec: {placementRefs: [{name: p}], manifestWorkTemplate: {workload: {manifests: []}}}}
`

// optional installs the kinds that a hub has only while their gates are on.
func optional(t *testing.T, client dynamic.Interface) {
	t.Helper()
	for _, name := range []string{crd.ManagedServiceAccounts, crd.ClusterPermissions} {
		u, err := crd.Any(name)
		require.NoError(t, err)
		_, err = client.Resource(definitions).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// small creates hubObjects, with the UIDs of their owners.
func small(t *testing.T, client dynamic.Interface) {
	t.Helper()
	owners := map[string]*unstructured.Unstructured{}
	for _, document := range strings.Split(hubObjects, "---\n") {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &u.Object))
		if kind, found, _ := unstructured.NestedString(u.Object, "metadata", "OWNER"); found {
			unstructured.RemoveNestedField(u.Object, "metadata", "OWNER")
			o := owners[kind]
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: o.GetAPIVersion(), Kind: kind, Name: o.GetName(), UID: o.GetUID()}})
		}
		api, status := client.Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace()), u.Object["status"]
		var live *unstructured.Unstructured
		until(t, func() (err error) {
			if live, err = api.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("%s: %w", fleet.Describe(u), err) // kinds are served one after the other
			}
			return nil
		})
		owners[u.GetKind()] = live
		if status != nil {
			live.Object["status"] = status
			_, err := api.UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
	}
}

// TestARestoreIsRepeatedAndRefused restores onto an API server without a hub's process, so that the
// test sees what each step leaves.
func TestARestoreIsRepeatedAndRefused(t *testing.T) {
	t.Parallel()
	hub, second := harness.Fresh(t, "hub"), harness.Fresh(t, "second")
	kubeconfig(t, hub, second)
	folder := t.TempDir()
	file, cut, other := filepath.Join(folder, "hub.jsonl"), filepath.Join(folder, "cut.jsonl"), filepath.Join(folder, "other.jsonl")
	source := asHub(t, hub)
	deployed := func(client dynamic.Interface, version string) {
		_, err := client.Resource(deployments).Namespace("open-cluster-management").Patch(t.Context(), "cluster-manager", types.JSONPatchType,
			[]byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.org/ocm-hub:`+version+`"}]`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	optional(t, source)
	small(t, source)
	deployed(source, "v1.0.0")
	saved := run(t, "hub", "backup", file, "--context", "hub", "--include-secrets", "apps/login")
	require.Zero(t, saved.code)
	require.Contains(t, saved.err, "manifests of 1 work hold Secrets")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), `"other"`, "a Secret that nobody named")
	require.NoError(t, source.Resource(clusters).Delete(t.Context(), "c2", metav1.DeleteOptions{}))
	require.Zero(t, run(t, "hub", "backup", other, "--context", "hub").code)
	restores := func(code int, want string, words ...string) {
		t.Helper()
		got := run(t, append([]string{"hub", "restore", "--context", "second"}, words...)...)
		require.Equal(t, code, got.code)
		require.Contains(t, got.out+got.err, want)
	}

	restores(6, "is not a hub", file)
	target := asHub(t, second)
	require.NoError(t, os.WriteFile(cut, text[:len(text)/2], 0o600))
	restores(6, "the backup is broken", cut)
	deployed(target, "v0.9.0")
	restores(6, "the hub is older than the backup", file)
	deployed(target, "v1.0.1")
	restores(6, "--feature-gates ManagedServiceAccount=true,ClusterPermission=true --context second", file)
	optional(t, target)
	there := object("cluster.open-cluster-management.io/v1", "ManagedCluster", "", "there", nil)
	_, err = target.Resource(clusters).Create(t.Context(), there, metav1.CreateOptions{})
	require.NoError(t, err)
	until(t, func() error { // a kind is served a moment after its definition is there
		if got := run(t, "hub", "restore", "--context", "second", file); got.code != 6 || !strings.Contains(got.err, "it has ManagedCluster there") {
			return errors.New(got.err)
		}
		return nil
	})
	restores(0, "ManagedCluster", file, "--merge", "--dry-run")
	require.NoError(t, target.Resource(clusters).Delete(t.Context(), "there", metav1.DeleteOptions{}))

	triesFirst(t, target, file)

	// Clusters have not returned: placements keep what they had selected. The first run
	// writes everything, so that the deadline of the second ends only its wait.
	restores(0, "1 placement keeps what it selected", file, "--wait=false")
	isHeld(t, target)
	runsOut(t, "", "c1 have not returned", "hub", "restore", "--context", "second", file)
	isHeld(t, target)
	restores(6, "the restore of another backup is not finished", other)

	// What is missing is created, what is there is kept.
	require.NoError(t, target.Resource(works).Namespace("c1").Delete(t.Context(), "w", metav1.DeleteOptions{}))
	restores(0, "1 placement keeps what it selected", file, "--wait=false")
	isHeld(t, target)
	restores(0, "hub restored", file, "--release")
	placement, err := target.Resource(placements).Namespace("apps").Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, placement.GetAnnotations())
	restores(0, "(unchanged)", file)
	restores(6, "is not empty", other)
}

// triesFirst restores in a dry run on the server: while a namespace is being deleted, which refuses
// new objects, and when it has gone.
func triesFirst(t *testing.T, target dynamic.Interface, file string) {
	t.Helper()
	apps := object("v1", "Namespace", "", "apps", map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/held"}}})
	_, err := target.Resource(namespaces).Create(t.Context(), apps, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, target.Resource(namespaces).Delete(t.Context(), "apps", metav1.DeleteOptions{}))
	tries := func() (code int, text string) {
		got := run(t, "hub", "restore", "--context", "second", file, "--dry-run=server")
		return got.code, got.out + got.err
	}
	until(t, func() error { // admission caches namespaces
		if code, text := tries(); code != 6 || !strings.Contains(text, "would refuse 4 objects") || !strings.Contains(text, "is being terminated") {
			return fmt.Errorf("%d: %s", code, text)
		}
		return nil
	})
	_, err = target.Resource(namespaces).Patch(t.Context(), "apps", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	until(t, func() error {
		if _, err := target.Resource(namespaces).Get(t.Context(), "apps", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("namespace apps has not gone: %w", err)
		}
		return nil
	})
	code, text := tries()
	require.Zero(t, code, text)
	require.Contains(t, text, "8 objects are not checked")
	_, err = target.Resource(clusters).Get(t.Context(), "c1", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a dry run writes nothing: %v", err)
}

// isHeld requires that everything of hubObjects is there, and that the placement is frozen.
func isHeld(t *testing.T, client dynamic.Interface) {
	t.Helper()
	get := func(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
		t.Helper()
		u, err := client.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return u
	}
	cluster := get(clusters, "", "c1")
	require.Equal(t, map[string]string{"note": "mine"}, cluster.GetAnnotations())
	require.Equal(t, "prod", cluster.GetLabels()["env"])
	require.Equal(t, true, cluster.Object["spec"].(map[string]any)["hubAcceptsClient"])
	require.Len(t, cluster.Object["spec"].(map[string]any)["taints"], 1)
	require.NotContains(t, cluster.Object, "status", "its agent reports it again")
	require.Equal(t, false, get(clusters, "", "c2").Object["spec"].(map[string]any)["hubAcceptsClient"])
	require.Equal(t, "web", get(namespaces, "", "apps").GetLabels()["team"])
	get(fleet.ManagedAccounts, "c1", "reader")
	get(fleet.ClusterPermissions, "c1", "readers")
	require.NotEmpty(t, get(secrets, "apps", "login").Object["data"])
	_, err := client.Resource(secrets).Namespace("apps").Get(t.Context(), "other", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))

	placement := get(placements, "apps", "p")
	require.Equal(t, "true", placement.GetAnnotations()[clusterv1beta1.AnnotationSchedulingDisable])
	decision := get(clusterv1beta1.GroupVersion.WithResource("placementdecisions"), "apps", "p-decision-1")
	require.NotEmpty(t, decision.Object["status"])
	addOn := get(instances, "c1", "a")
	require.NotEmpty(t, addOn.Object["status"])
	for owned, owner := range map[*unstructured.Unstructured]*unstructured.Unstructured{
		decision: placement, addOn: get(registrations, "", "a"), get(works, "c1", "w"): addOn,
	} {
		require.Len(t, owned.GetOwnerReferences(), 1, owned.GetKind())
		require.Equal(t, owner.GetUID(), owned.GetOwnerReferences()[0].UID, owned.GetKind())
	}
	require.Empty(t, get(workSets, "apps", "s").GetOwnerReferences(), "its owner is not in the backup")
}
