// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// problems runs check on the whole hub and returns the titles of what is wrong, by area and code.
func (s *scene) problems(t *testing.T) map[string]string {
	t.Helper()
	_, said := s.ocm(t, "check -o json")
	out := map[string]string{}
	for key, f := range findings(t, said) {
		out[key] = f.Title
	}
	return out
}

// finding is what check says of one problem.
type finding struct{ Code, Severity, Title, Cause, Fix string }

// findings returns what is wrong according to a report in JSON, by area and code.
func findings(t *testing.T, said string) map[string]finding {
	t.Helper()
	var report struct {
		Areas []struct {
			Name     string
			Findings []finding
		}
	}
	require.NoError(t, json.Unmarshal([]byte(said), &report), said)
	out := map[string]finding{}
	for _, area := range report.Areas {
		for _, f := range area.Findings {
			if f.Severity == "ok" {
				continue
			}
			require.NotEmpty(t, f.Fix, "%s %s has no fix", area.Name, f.Code)
			name, _, _ := strings.Cut(area.Name, " (")
			out[name+" "+f.Code] = f
		}
	}
	return out
}

// TestTwelveFaultsAreNamedInOneRun plants faults as users, agents and the network cause them on a
// hub that runs, and sees all of them in one run of check. The names begin with zeros, because the
// first of many equal findings are told.
func TestTwelveFaultsAreNamedInOneRun(t *testing.T) {
	s := sharedHub(t)
	newcomer, requests := s.bootstrap(t)
	asks := func(name string) {
		t.Helper()
		s.Claim(t, name)
		settled(t, func() error { return create(newcomer, cluster(name)) })
		s.after(t, clusters, "", name)
	}
	joins := func(name string) *agent {
		t.Helper()
		a := s.register(t, name, "agent")
		s.after(t, clusters, "", name)
		s.joined(t, a, name)
		return a
	}

	asks("00-asks")
	asks("00-waits")
	csr, _ := agentRequest(t, requests, "00-waits", "agent")
	s.after(t, certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), "", csr.Name)
	s.accept(t, "00-waits", true)
	asks("00-silent")
	s.accept(t, "00-silent", true)
	asks("00-denied")
	s.accept(t, "00-denied", true)
	s.await(t, "00-denied", "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
	code, _ := s.ocm(t, "cluster deny 00-denied --yes")
	require.Zero(t, code)
	asks("00-leaves")
	require.NoError(t, patch(s.dyn, "00-leaves", `{"metadata":{"finalizers":["example.com/hold"]}}`))
	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), "00-leaves", metav1.DeleteOptions{}))
	joins("00-late")
	require.NoError(t, patch(s.dyn, "00-late", `{"spec":{"leaseDurationSeconds":1}}`))
	joins("00-unwell").report(t, "00-unwell", metav1.ConditionFalse)
	joins("00-clock").renew(t, "00-clock", time.Hour)
	joins("00-lost")
	require.NoError(t, patch(s.dyn, "00-lost", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"00-nosuch"}}}`))
	s.failingWork(t, joins("00-works"), "00-works")
	space := namespace("00-unbound")
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = s.kube.CoreV1().Namespaces().Delete(context.Background(), space.Name, metav1.DeleteOptions{})
	})
	unbound := parsed(t, `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":"web"},"spec":{}}`)
	reached(t, func() error {
		_, err := s.dyn.Resource(placements).Namespace(space.Name).Create(t.Context(), unbound, metav1.CreateOptions{})
		return err
	})
	s.after(t, placements, space.Name, "web")
	s.addon(t, "00-works", "00-unknown")
	s.after(t, addons, "00-works", "00-unknown")

	want := map[string]string{
		"hub OCM0204":                      "is only valid on this machine: agents elsewhere cannot join$",
		"cluster 00-asks OCM0301":          "^it asks to join and waits for an answer$",
		"cluster 00-waits OCM0302":         "^it waits for its certificate$",
		"cluster 00-silent OCM0303":        "^accepted, but its agent has not reported$",
		"cluster 00-late OCM0304":          `^lease not renewed for \S+ \(limit 5s\)$`,
		"cluster 00-unwell OCM0305":        "^its API server is not healthy$",
		"cluster 00-denied OCM0306":        "^it is denied",
		"cluster 00-leaves OCM0307":        "^it is being deleted for",
		"cluster 00-clock OCM0308":         "^its clock differs from the hub's$",
		"cluster 00-lost OCM0312":          "^it is in the cluster set 00-nosuch, which does not exist$",
		"cluster 00-works OCM0624":         "^work web is not applied: the cluster has no namespace nosuch$",
		"placement 00-unbound/web OCM0501": "^no cluster set is bound to its namespace$",
		"add-on 00-unknown OCM0701":        "but it is not registered$",
	}
	require.Greater(t, len(want), 12)
	var got map[string]string
	soon(t, func() bool {
		got = s.problems(t)
		for key := range want {
			if _, ok := got[key]; !ok {
				return false
			}
		}
		return true
	}, "%v", &got)
	for key, title := range want {
		require.Regexp(t, title, got[key], key)
	}
}

// failingWork creates a work and reports, as an agent does, that it cannot be applied.
func (s *scene) failingWork(t *testing.T, a *agent, cluster string) {
	t.Helper()
	u := parsed(t, `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":"web"},"spec":{"workload":{"manifests":[`+
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"nosuch"}}]}}}`)
	reached(t, func() error {
		_, err := s.dyn.Resource(works).Namespace(cluster).Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
	s.after(t, works, cluster, "web")
	const failed = `{"type":"Applied","status":"False","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z",`
	status := `{"status":{"conditions":[` + failed + `"reason":"AppliedManifestWorkFailed","message":"m"}],"resourceStatus":{"manifests":[` +
		`{"resourceMeta":{"ordinal":0,"version":"v1","kind":"ConfigMap","resource":"configmaps","namespace":"nosuch","name":"a"},"conditions":[` + failed +
		`"reason":"AppliedManifestFailed","message":"Failed to apply manifest: namespaces \"nosuch\" not found"}]}]}}}`
	_, err := a.dyn.Resource(works).Namespace(cluster).Patch(t.Context(), "web", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// TestOneWorkIsJudged checks single works of a hub that runs: one that fails until its cause is
// gone, one of a cluster that is away, and what is not there.
func TestOneWorkIsJudged(t *testing.T) {
	s := sharedHub(t)
	const name = "00-judged-work"
	s.Claim(t, name)
	a := s.register(t, name, "agent")
	s.after(t, clusters, "", name)
	s.joined(t, a, name)
	s.failingWork(t, a, name)
	judged := func(works string) (int, map[string]finding) {
		t.Helper()
		code, said := s.ocm(t, "check work "+works+" -o json")
		return code, findings(t, said)
	}
	code, found := judged(name + "/web")
	require.Equal(t, 0, code, "a warning")
	require.Len(t, found, 1)
	f := found["work "+name+"/web OCM0624"]
	require.Equal(t, "work web is not applied: the cluster has no namespace nosuch", f.Title)
	require.Contains(t, f.Cause, `namespaces "nosuch" not found`)
	require.Equal(t, "kubectl create namespace nosuch --context <context of "+name+">      or declare it in the work", f.Fix)

	// The agent reports what it sees once the line was typed on its cluster.
	applied := `{"status":{"conditions":[{"type":"Applied","status":"True","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"A",` +
		`"message":""},{"type":"Available","status":"True","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"A","message":""}],` +
		`"resourceStatus":{"manifests":[]}}}`
	_, err := a.dyn.Resource(works).Namespace(name).Patch(t.Context(), "web", types.MergePatchType, []byte(applied), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	code, found = judged(name + "/web")
	require.Zero(t, code)
	require.Empty(t, found)

	code, found = judged(name + "/nosuch nosuch/web " + name + "/web")
	require.Equal(t, 3, code)
	require.Equal(t, `there is no work "nosuch" on `+name, found["work "+name+"/nosuch OCM0311"].Title)
	require.Equal(t, `there is no managed cluster "nosuch"`, found["work nosuch/web OCM0303"].Title)
	_, said := s.ocm(t, strings.TrimSpace(strings.TrimPrefix(found["work "+name+"/nosuch OCM0311"].Fix, "kubectl ocm ")))
	require.Contains(t, said, "web", "the fix shows the works that there are")
	for _, wrong := range []string{"web", "a/b/c", "/web", "a/", "A/web", "a/B"} {
		code, said := s.ocm(t, "check work "+wrong)
		require.Equal(t, 2, code, wrong)
		require.Contains(t, said, "fix:", wrong)
	}
}

// TestWhatKeepsAReplicaSetFromClustersIsNamed plants the faults of replica sets on a hub that runs.
func TestWhatKeepsAReplicaSetFromClustersIsNamed(t *testing.T) {
	const name = "00-replicas"
	f := newFan(t, name, 2)
	area := "replica set " + name + "/web "
	found := func(code, title string) finding {
		t.Helper()
		var all map[string]finding
		soon(t, func() bool {
			_, said := f.ocm(t, "check -o json")
			all = findings(t, said)
			return strings.Contains(all[area+code].Title, title)
		}, "%v", &all)
		return all[area+code]
	}
	// typed runs a printed line up to its remark.
	typed := func(line string) string {
		t.Helper()
		line, _, _ = strings.Cut(strings.TrimPrefix(line, "kubectl ocm "), "      ")
		_, said := f.ocm(t, line)
		return said
	}
	f.deploy(t, "web", "one", "", `{"name":"p","rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":1,"progressDeadline":"2s"}}}`)
	missing := found("OCM0641", "there is no placement "+name+"/p")
	require.Contains(t, missing.Cause, "spec.placementRefs")
	typed(missing.Fix)
	empty := found("OCM0641", "no cluster is selected for it")
	require.Contains(t, typed(empty.Fix), "OCM0501", "the fix says why")
	require.NoError(t, f.dyn.Resource(placements).Namespace(name).Delete(t.Context(), "p", metav1.DeleteOptions{}))
	f.place(t, "p", f.clusters...)

	stopped := found("OCM0642", "its rollout has stopped")
	require.Contains(t, stopped.Cause, "1 are out of time")
	require.Contains(t, typed(stopped.Fix), f.clusters[0], "the fix shows the work")
	u := f.works(t, "web")[0]
	const failed = `{"type":"Applied","status":"False","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z",`
	status := `{"status":{"conditions":[` + failed + `"reason":"AppliedManifestWorkFailed","message":"m"}],"resourceStatus":{"manifests":[` +
		`{"resourceMeta":{"ordinal":0,"version":"v1","kind":"ConfigMap","resource":"configmaps","namespace":"default","name":"settings"},"conditions":[` + failed +
		`"reason":"AppliedManifestFailed","message":"Failed to apply manifest: the older ManifestWork old declares this object"}]}]}}}`
	api := f.dyn.Resource(works).Namespace(u.GetNamespace())
	_, err := api.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	rival := found("OCM0643", "an older work declares an object of it on 1 cluster: "+u.GetNamespace())
	require.Contains(t, rival.Cause, "the older ManifestWork old")
	require.Contains(t, rival.Fix, "kubectl ocm check work "+u.GetNamespace()+"/"+u.GetName())

	// The clusters recover.
	for _, cluster := range f.clusters {
		soon(t, func() bool {
			return slices.ContainsFunc(f.works(t, "web"), func(w unstructured.Unstructured) bool { return w.GetNamespace() == cluster })
		}, "%s gets no work", cluster)
		f.succeed(t, "web", cluster)
	}
	var all map[string]finding
	soon(t, func() bool {
		_, said := f.ocm(t, "check -o json")
		all = findings(t, said)
		return !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(key string) bool { return strings.HasPrefix(key, area) })
	}, "%v", &all)
}

// TestManifestsThatWillNotWorkAreNamed: the hub takes all of them, and check says by which of its
// checks they would be found afterwards. What is in the same files counts as there.
func TestManifestsThatWillNotWorkAreNamed(t *testing.T) {
	s := sharedHub(t)
	const (
		placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: wants, namespace: default}\n"
		binding   = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n" +
			"metadata: {name: %s, namespace: default}\nspec: {clusterSet: %[1]s}\n"
		set     = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: 00-judged}\n"
		newborn = "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: 00-newborn}\n---\n" +
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: 00-newborn}\n---\n"
		work = "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {name: web, namespace: %s}\nspec: " +
			"{workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]}%s}\n"
		replicas = "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {name: web, namespace: default}\n" +
			"spec: {placementRefs: [{name: wants}], manifestWorkTemplate: {workload: {manifests: [" +
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]}}}\n"
		rules = ", manifestConfigs: [{resourceIdentifier: {group: \"\", resource: configmaps, name: %s, namespace: default}}]"
		addOn = "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: %s\nmetadata: {name: judged%s}\nspec: %s\n"
	)
	placed := fmt.Sprintf(addOn, "ClusterManagementAddOn", "",
		"{installStrategy: {type: Placements, placements: [{name: wants, namespace: default}]}, supportedConfigs: [{group: addon.open-cluster-management.io, "+
			"resource: addontemplates, defaultConfig: {name: judged-1.0.0}}]}")
	instance := func(spec string) string {
		return fmt.Sprintf(addOn, "ManagedClusterAddOn", ", namespace: 00-newborn", spec)
	}
	for name, tc := range map[string]struct {
		text       string
		want, none []string
	}{
		"a placement in a namespace without a set": {
			placement + "spec: {}\n", []string{"OCM0501 Placement default/wants: no cluster set is bound to its namespace"}, nil},
		"with its set and a cluster": {
			placement + "spec: {clusterSets: [00-judged]}\n---\n" + fmt.Sprintf(binding, "00-judged") + "---\n" + set +
				"spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {birth: new}}}}\n---\n" +
				strings.Replace(newborn, "{name: 00-newborn}", "{name: 00-newborn, labels: {birth: new}}", 1),
			nil, []string{"OCM0501", "OCM0502", "OCM0503", "OCM0504"}},
		"a selector that fits no cluster": {
			set + "spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {birth: never}}}}\n---\n" + newborn,
			[]string{"OCM0503 ManagedClusterSet 00-judged: its selector fits no cluster"}, nil},
		"a binding to no set": {fmt.Sprintf(binding, "00-none"),
			[]string{"OCM0502 ManagedClusterSetBinding default/00-none: there is no cluster set 00-none", "kubectl ocm clusterset create 00-none"}, nil},
		"a work of no cluster":    {fmt.Sprintf(work, "default", ""), []string{"OCM0603 ManifestWork default/web: there is no managed cluster default"}, nil},
		"a work of a new cluster": {newborn + fmt.Sprintf(work, "00-newborn", fmt.Sprintf(rules, "a")), nil, []string{"OCM06"}},
		"rules about nothing": {newborn + fmt.Sprintf(work, "00-newborn", fmt.Sprintf(rules, "b")),
			[]string{"OCM0604 ManifestWork 00-newborn/web: manifestConfigs[0] is about configmaps default/b, which it does not declare"}, []string{"OCM0603"}},
		"a replica set without its placement": {replicas,
			[]string{"OCM0605 ManifestWorkReplicaSet default/web: there is no placement default/wants", "kubectl ocm placement create wants -n default"}, nil},
		"with its placement": {replicas + "---\n" + placement + "spec: {}\n", []string{"OCM0501"}, []string{"OCM0605"}},
		"an add-on without placement and template": {placed, []string{
			"OCM0702 ClusterManagementAddOn judged: there is no placement default/wants",
			"OCM0710 ClusterManagementAddOn judged: there is no AddOnTemplate \"judged-1.0.0\""}, nil},
		"an add-on that is not registered": {newborn + instance("{}"),
			[]string{"OCM0701 ManagedClusterAddOn 00-newborn/judged: there is no ClusterManagementAddOn judged"}, []string{"OCM0709"}},
		"an add-on of no cluster": {strings.Replace(instance("{}"), "00-newborn", "default", 1),
			[]string{"OCM0709 ManagedClusterAddOn default/judged: there is no managed cluster default"}, nil},
		"a configuration that it does not read": {newborn + placed + "---\n" + instance("{configs: [{group: example.com, resource: things, name: x}]}"),
			[]string{"OCM0703 ManagedClusterAddOn 00-newborn/judged: the add-on does not read things.example.com"}, []string{"OCM0701"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "objects.yaml")
			require.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
			_, said := s.ocm(t, "check -n default -f "+file)
			for _, text := range tc.want {
				require.Contains(t, said, text)
			}
			for _, text := range append(tc.none, "OCM0602") {
				require.NotContains(t, said, text)
			}
		})
	}
}
