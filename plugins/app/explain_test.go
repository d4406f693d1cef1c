// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
)

// newPlacement is a placement that the hub does not have.
const newPlacement = `apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: fresh, namespace: default}
spec:
  numberOfClusters: 2
  predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {region: apac}}}}]
`

func TestWhatIsPrintedOfExplanations(t *testing.T) {
	compareLines(t, newPlacement, map[string]string{
		"explain":                  "placement explain web --context hub",
		"explain-wide":             "placement explain web -o wide --context hub",
		"explain-wide-predicates":  "placement explain gpu -o wide --context hub",
		"explain-wide-spread":      "placement explain groups -o wide --context hub",
		"explain-drift":            "placement explain default/drifted --context hub",
		"explain-predicates":       "placement explain gpu --context hub",
		"explain-groups":           "placement explain groups --context hub",
		"explain-wrong":            "placement explain wrong --context hub",
		"explain-frozen":           "placement explain frozen --context hub",
		"explain-unbound":          "placement explain lonely/web --context hub",
		"explain-scores":           "placement explain scores -n shop --context hub",
		"explain-cluster":          "placement explain web -c cluster1,cluster2,cluster3,cluster6,cluster8 --context hub",
		"explain-cluster-spread":   "placement explain groups -c cluster4,cluster5 --context hub",
		"explain-cluster-json":     "placement explain web -c cluster3 -o json --context hub",
		"explain-cluster3":         "placement explain web -c cluster3 --context hub",
		"explain-name":             "placement explain web -o name --context hub",
		"explain-no-cluster":       "placement explain web -c nosuch --context hub",
		"explain-missing":          "placement explain nosuch --context hub",
		"explain-wrong-name":       "placement explain a/b/c --context hub",
		"explain-not-a-hub":        "placement explain web --context spoke",
		"simulate":                 "placement simulate -f - --context hub",
		"simulate-without":         "placement simulate web --without cluster4 --context hub",
		"simulate-same":            "placement simulate web --without cluster5 --context hub",
		"simulate-nobody":          "placement simulate web --without nosuch --context hub",
		"simulate-nothing":         "placement simulate web --context hub",
		"simulate-neither":         "placement simulate --context hub",
		"simulate-json":            "placement simulate web --without cluster4 -o json --context hub",
		"create-explain":           "placement create new --label-selectors region=eu --explain --context hub",
		"create-explain-dry-run":   "placement create new --label-selectors region=eu --explain --dry-run -o json --context hub",
		"simulate-no-file":         "placement simulate -f missing.yaml --context hub",
		"simulate-stdin-twice":     "placement simulate -f - --with-cluster - --context hub",
		"simulate-wrong-format":    "placement simulate -f - -o table --context hub",
		"simulate-not-a-hub":       "placement simulate -f - --context spoke",
		"help-explain":             "placement explain --help",
		"help-simulate":            "placement simulate --help",
		"explain-surplus-argument": "placement explain web more --context hub",
	}, "explain", "simulate-without", "simulate-same")
}

// In a large fleet, clusters that differ in nothing but names and numbers share one row with the
// range of their scores; -o wide shows every cluster.
func TestEqualClustersShareARow(t *testing.T) {
	s := newPlacementsScene(t)
	text, err := os.ReadFile("testdata/placements.yaml")
	require.NoError(t, err)
	var more strings.Builder
	for i := range 400 {
		region := []string{"apac", "eu"}[i%2]
		fmt.Fprintf(&more, "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"+
			"metadata: {name: edge%03d, labels: {cluster.open-cluster-management.io/clusterset: prod, region: %s}}\n"+
			"spec: {hubAcceptsClient: true}\nstatus: {capacity: {cpu: \"8\"}, allocatable: {cpu: \"%d\"}}\n", i, region, i%8)
	}
	s.hub = apitest.New(t, created, string(text)+more.String())
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub}))
	words := []string{"placement", "explain", "web", "-n", "default", "--context", "hub"}
	for suffix, width := range map[string]int{"-80": 80, "-200": 200} {
		s.width = width
		goldentest.Compare(t, "golden/placement-explain-many"+suffix, transcript(words, s.run(words...)))
	}
	require.Regexp(t, `(?m)^cluster2, \.\. +202 +no +✓ +✗ `, s.run(words...).out)
	wide := s.run(append(words, "-o", "wide")...).out
	for i := range 400 {
		require.Contains(t, wide, fmt.Sprintf("\nedge%03d ", i))
	}
}

// Without UTF-8, the marks are words.
func TestTheMarksOfAnExplanationInPlainLetters(t *testing.T) {
	s := newPlacementsScene(t)
	s.env["LANG"] = "C"
	got := s.run("placement", "explain", "web", "-n", "default", "--context", "hub").out
	require.Regexp(t, `(?m)^cluster3 +no +\[ok\] +\[ok\] +\[FAIL\] `, got)
	require.Regexp(t, `(?m)^cluster6 +no +\[FAIL\] +\[skip\] `, got)
}

// A simulated cluster joins the set that it would get on the hub: default, unless it
// names another.
func TestAClusterThatMayComeIsSimulated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c9.yaml")
	simulate := func(labels string) (said, []string) {
		text := "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: c9, labels: {" + labels + "}}\n" +
			"status: {capacity: {cpu: \"64\"}, allocatable: {cpu: \"64\"}}\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		got := newPlacementsScene(t).run("placement", "simulate", "web", "--with-cluster", path, "-o", "json", "--context", "hub")
		var e struct{ Selected []string }
		require.NoError(t, json.Unmarshal([]byte(got.out), &e), got.err)
		return got, e.Selected
	}
	got, selected := simulate("region: apac, cluster.open-cluster-management.io/clusterset: prod")
	require.Equal(t, 1, got.code)
	require.Contains(t, selected, "c9")
	got, selected = simulate("region: apac")
	require.Zero(t, got.code)
	require.Equal(t, []string{"cluster1", "cluster4"}, selected)
}

// A decision with the same clusters in other groups, or in another order when sorted by
// score, is a different decision.
func TestGroupsAndOrderOfTheLiveDecisionCount(t *testing.T) {
	const decision = "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\n" +
		"metadata: {name: moved-decision-1, namespace: default, labels: {cluster.open-cluster-management.io/placement: moved, " +
		"cluster.open-cluster-management.io/decision-group-index: \"0\"}}\n" +
		"status: {decisions: [{clusterName: cluster4, reason: \"\"}, {clusterName: cluster2, reason: \"\"}]}\n"
	const placement = "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n" +
		"metadata: {name: moved, namespace: default}\nspec: {clusterSets: [prod], numberOfClusters: 2, "
	for name, tc := range map[string]struct{ spec, live, said string }{
		"the same": {
			"prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: Steady}}]}",
			"same",
			"",
		},
		"in other groups": {
			"prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: Steady}}]}, " +
				"decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 1}}",
			"~cluster4",
			"~ cluster4\n",
		},
		"in another order": {
			"prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: Steady}}]}, sortBy: Score",
			"in another order",
			"in another order\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPlacementsScene(t)
			text, err := os.ReadFile("testdata/placements.yaml")
			require.NoError(t, err)
			s.hub = apitest.New(t, created, string(text)+decision+placement+tc.spec+"}\n")
			t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub}))
			require.Contains(t, s.run("placement", "explain", "moved", "-n", "default", "--context", "hub").out, "live decision: "+tc.live+"\n")
			got := s.run("placement", "simulate", "default/moved", "--without", "cluster5", "--context", "hub")
			if tc.said == "" {
				require.Zero(t, got.code, got.out)
				return
			}
			require.Equal(t, 1, got.code)
			require.True(t, strings.HasSuffix(got.out, "\n\n"+tc.said), got.out)
		})
	}
}

// Files that cannot be simulated are refused with field and fix, before any request to
// the hub.
func TestPlacementsThatCannotBeSimulated(t *testing.T) {
	const cluster = "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: c9}\n"
	for name, tc := range map[string]struct{ text, with, want, fix string }{
		"no YAML":      {text: "a: [", want: "is not YAML", fix: "correct the file"},
		"another kind": {text: cluster, want: "holds a ManagedCluster", fix: "leave it out"},
		"an older version": {
			text: strings.Replace(newPlacement, "v1beta1", "v1alpha1", 1),
			want: "v1beta1 is needed",
			fix:  "leave it out",
		},
		"nothing": {text: "# nothing\n", want: "0 placements", fix: "one placement"},
		"two":     {text: newPlacement + "---\n" + newPlacement, want: "2 placements", fix: "one placement"},
		"no name": {
			text: strings.Replace(newPlacement, "name: fresh, ", "", 1),
			want: "cannot be the name",
			fix:  "NAMESPACE/NAME",
		},
		"an unknown field": {
			text: strings.Replace(newPlacement, "numberOfClusters", "numberOfCluster", 1),
			want: "spec.numberOfCluster",
			fix:  "kubectl explain placement",
		},
		"a wrong type": {
			text: strings.Replace(newPlacement, "numberOfClusters: 2", "numberOfClusters: two", 1),
			want: "numberOfClusters",
			fix:  "kubectl explain placement",
		},
		"a negative number": {
			text: strings.Replace(newPlacement, "numberOfClusters: 2", "numberOfClusters: -2", 1),
			want: "spec.numberOfClusters",
			fix:  "0 or more",
		},
		"no cluster": {text: newPlacement, with: "# nothing\n", want: "no managed cluster", fix: "ManagedCluster"},
		"a reserved name": {
			text: newPlacement,
			with: strings.Replace(cluster, "c9", "kube-x", 1),
			want: "kube-x",
			fix:  "choose a name",
		},
		"a wrong cluster": {
			text: newPlacement,
			with: cluster + "spec: {taint: []}\n",
			want: "spec.taint",
			fix:  "kubectl explain managedcluster",
		},
	} {
		t.Run(name, func(t *testing.T) {
			words := []string{"placement", "simulate", "-f", "-", "--context", "nosuch"}
			if tc.with != "" {
				path := filepath.Join(t.TempDir(), "with.yaml")
				require.NoError(t, os.WriteFile(path, []byte(tc.with), 0o600))
				words = append(words, "--with-cluster", path)
			}
			got := newPlacementsScene(t).runIn(tc.text, words...)
			require.Equal(t, 2, got.code, got.err)
			require.Empty(t, got.out)
			require.Contains(t, got.err, tc.want)
			require.Contains(t, got.err[strings.LastIndex(got.err, "fix: "):], tc.fix)
		})
	}
}

// Every command of the guide that begins with $ prints on the hub of these tests exactly
// what the guide shows.
func TestTheGuideOfPlacementsIsTrue(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/placement.md")
	require.NoError(t, err)
	typed := 0
	for _, block := range strings.Split(string(guide), "```\n") {
		line, ok := strings.CutPrefix(block, "$ kubectl ocm ")
		if !ok {
			continue
		}
		line, want, _ := strings.Cut(line, "\n")
		got := newPlacementsScene(t).run(strings.Fields(line)...)
		if want != "" {
			typed++
			require.Equal(t, want, got.err+got.out, line)
		}
		require.NotEqual(t, 2, got.code, got.err)
	}
	require.GreaterOrEqual(t, typed, 11)
}
