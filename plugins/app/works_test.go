// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
)

// newWorksScene returns a hub with works in all states, and the objects in further files
// of testdata.
func newWorksScene(t *testing.T, more ...string) *scene {
	t.Helper()
	return newSceneOf(t, append([]string{"fleet", "works"}, more...)...)
}

// newSceneOf returns a scene whose hub has the objects of these files of testdata.
func newSceneOf(t *testing.T, files ...string) *scene {
	t.Helper()
	s := newScene(t)
	var documents []string
	for _, name := range files {
		text, err := os.ReadFile("testdata/" + name + ".yaml")
		require.NoError(t, err)
		documents = append(documents, string(text))
	}
	s.hub = apitest.New(t, created, documents...)
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub, "spoke": s.spoke}))
	return s
}

func TestWhatIsPrintedOfWorks(t *testing.T) {
	for name, line := range map[string]string{
		"work-states":             "work list --context hub -o wide",
		"work-tree":               "work tree batch web --context hub",
		"work-tree-going":         "work tree going --context hub",
		"work-tree-json":          "work tree batch --context hub -o json",
		"work-tree-missing":       "work tree nosuch --context hub",
		"work-tree-sorted":        "work tree batch web --context hub --sort-by name",
		"work-tree-all":           "work tree --all --context hub",
		"work-tree-all-wide":      "work tree --all -o wide --context hub",
		"work-tree-all-named":     "work tree batch --all --context hub",
		"work-tree-all-missing":   "work tree nosuch --all --context hub",
		"work-tree-all-json":      "work tree --all --context hub -o json",
		"work-tree-all-color":     "work tree --all --context hub --color always",
		"work-tree-all-sorted":    "work tree --all --context hub --sort-by state",
		"work-tree-nothing":       "work tree --context hub",
		"work-tree-help":          "work tree --help",
		"work-sets-list":          "work list --sets --context hub",
		"work-sets-list-wide":     "work list --sets --context hub -o wide",
		"work-sets-namespace":     "work list --sets shop -n apps --context hub -o json",
		"work-sets-missing":       "work list --sets nosuch --context hub",
		"work-sets-of-cluster":    "work list --sets -c cluster1 --context hub",
		"work-wait":               "work wait done --for complete --context hub",
		"work-wait-json":          "work wait done --context hub -o json",
		"work-wait-not-available": "work wait batch --context hub --timeout 3s",
		"work-wait-no-rule":       "work wait web -c cluster1 --for complete --context hub --timeout 3s",
		"work-wait-going":         "work wait going --for deleted -c cluster2 --context hub --timeout 3s",
		"work-wait-gone":          "work wait nosuch --for deleted --context hub",
		"work-wait-missing":       "work wait nosuch --context hub",
		"work-wait-wrong":         "work wait done --for ready --context hub",
		"work-diff":               "work diff web -f - -c cluster1 --context hub",
		"work-set-dry-run":        "work apply hello -f - --placement apps/everywhere --rollout progressive --max-concurrency 25% --context hub --dry-run",
		"work-set-apply":          "work apply hello -f - --placement apps/everywhere --rollout per-group --context hub",
		"work-set-wait":           "work apply shop -f - --placement apps/everywhere --context hub --wait --timeout 3s",
		"work-set-no-placement":   "work apply hello -f - --placement apps/nosuch --context hub",
		"work-set-delete-dry-run": "work delete shop --placement apps/everywhere --context hub --dry-run",
		"work-set-delete-asks":    "work delete shop --placement apps/everywhere --context hub",
		"work-set-delete":         "work delete shop --placement apps/everywhere --context hub --yes",
		"work-set-delete-orphan":  "work delete shop --placement apps/everywhere --context hub --yes --orphan",
		"work-strategy":           "work apply hello -f - -c cluster1 --update-strategy ssa --feedback text=.data.text --context hub --dry-run",
		"work-strategy-wrong":     "work apply hello -f - -c cluster1 --update-strategy replace --context hub",
		"work-feedback-wrong":     "work apply hello -f - -c cluster1 --feedback .data.text --context hub",
		"work-rollout-cluster":    "work apply hello -f - -c cluster1 --rollout progressive --context hub",
		"work-rollout-wrong":      "work apply hello -f - --placement apps/everywhere --rollout slow --context hub",
		"work-concurrency-alone":  "work apply hello -f - --placement apps/everywhere --max-concurrency 5 --context hub",
		"work-concurrency-wrong":  "work apply hello -f - --placement apps/everywhere --rollout progressive --max-concurrency some --context hub",
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(line)
			widths := map[string]int{"": 0}
			if name == "work-tree" || name == "work-tree-all" || strings.HasPrefix(name, "work-sets-list") {
				widths = map[string]int{"": 0, "-80": 80, "-200": 200}
			}
			for suffix, width := range widths {
				s := newWorksScene(t)
				s.width = width
				goldentest.Compare(t, "golden/"+name+suffix, transcript(words, s.runIn(manifest, words...)))
			}
		})
	}
}

// On a hub without ManifestWorkReplicaSet each cluster gets a work, and a rollout is
// refused.
func TestAPlacementOnAHubThatRollsNothingOut(t *testing.T) {
	s := newScene(t)
	works, err := os.ReadFile("testdata/works.yaml")
	require.NoError(t, err)
	fleet, err := os.ReadFile("testdata/fleet.yaml")
	require.NoError(t, err)
	s.hub = apitest.New(t, created, string(works), string(fleet))
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub, "spoke": s.spoke}))
	got := s.runIn(manifest, "work", "apply", "hello", "-f", "-", "--placement", "apps/everywhere", "--context", "hub")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "manifestwork/hello created on cluster1\nmanifestwork/hello created on cluster2\n", got.out)
	got = s.runIn(manifest, "work", "apply", "hello", "-f", "-", "--placement", "apps/everywhere", "--rollout", "all", "--context", "hub")
	require.Equal(t, 6, got.code)
	require.Contains(t, got.err, "hub init --feature-gates ManifestWorkReplicaSet=true")
}

// manyWorks returns a fleet of n clusters, each with one work: of every ten one fails, one is under
// way, one has none and one does not report.
func manyWorks(n int) string {
	var out strings.Builder
	for i := range n {
		available, applied := "True", "True"
		switch i % 10 {
		case 0:
			applied = "False"
		case 1:
			applied = ""
		case 2:
			available = "Unknown"
		}
		fmt.Fprintf(&out, "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: edge%03d}\n"+
			"spec: {hubAcceptsClient: true}\nstatus: {conditions: [{type: ManagedClusterJoined, status: \"True\"}, "+
			"{type: ManagedClusterConditionAvailable, status: %q, lastTransitionTime: %q}]}\n", i, available, created)
		if available == "True" {
			fmt.Fprintf(&out, "---\napiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: managed-cluster-lease, namespace: edge%03d}\n"+
				"spec: {renewTime: \"2026-11-21T11:59:55.000000Z\"}\n", i)
		}
		if i%10 == 3 {
			continue
		}
		fmt.Fprintf(&out, "---\napiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {name: web, namespace: edge%03d, generation: 1}\n"+
			"spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]}}\n", i)
		if applied != "" {
			fmt.Fprintf(&out, "status: {conditions: [{type: Applied, status: %q, observedGeneration: 1}, "+
				"{type: Available, status: \"True\", observedGeneration: 1}]}\n", applied)
		}
	}
	return out.String()
}

// The marks of a large fleet are folded at the width of the terminal, and each cluster has one.
func TestTheHeatOfALargeFleet(t *testing.T) {
	s := newScene(t)
	fleet, err := os.ReadFile("testdata/fleet.yaml")
	require.NoError(t, err)
	s.hub = apitest.New(t, created, string(fleet)+manyWorks(300))
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub}))
	words := []string{"work", "tree", "web", "--all", "--context", "hub"}
	for suffix, width := range map[string]int{"-80": 80, "-200": 200} {
		s.width = width
		got := s.run(words...)
		goldentest.Compare(t, "golden/work-heat"+suffix, transcript(words, got))
		for mark, n := range map[string]int{"✗": 30, "…": 30, "✓": 181, "?": 31, "·": 31} {
			require.Equal(t, n+1, strings.Count(got.out, mark), "one for each cluster, and one in the legend")
		}
		for line := range strings.Lines(got.out) {
			require.LessOrEqual(t, len([]rune(strings.TrimSpace(line))), width)
		}
	}
	s.env["LANG"], s.width = "C", 80
	goldentest.Compare(t, "golden/work-heat-ascii", transcript(words, s.run(words...)))
}

// The tree is drawn in ASCII if the terminal does not support UTF-8.
func TestATreeInPlainLetters(t *testing.T) {
	s := newWorksScene(t)
	s.env["LANG"] = "C"
	got := s.run("work", "tree", "done", "--context", "hub")
	require.Contains(t, got.out, "\n- ConfigMap")
}
