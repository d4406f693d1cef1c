// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
)

// newPlacementsScene returns a hub with placements in all states and the clusters they
// select from.
func newPlacementsScene(t *testing.T) *scene {
	t.Helper()
	return newSceneOf(t, "placements")
}

// compareLines runs each line on that hub and compares the output with a golden file.
// Lines whose name begins with one of wide run at several terminal widths. In a line,
// _ stands for a space within a word.
func compareLines(t *testing.T, stdin string, lines map[string]string, wide ...string) {
	t.Helper()
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(line)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "_", " ")
			}
			widths := map[string]int{"": 0}
			for _, prefix := range wide {
				if strings.HasPrefix(name, prefix) {
					widths = map[string]int{"": 0, "-80": 80, "-200": 200}
				}
			}
			for suffix, width := range widths {
				s := newPlacementsScene(t)
				s.width = width
				goldentest.Compare(t, "golden/placement-"+name+suffix, transcript(words, s.runIn(stdin, words...)))
			}
		})
	}
}

func TestWhatIsPrintedOfPlacements(t *testing.T) {
	compareLines(t, "", map[string]string{
		"list":           "placement list --context hub",
		"list-wide":      "placement list -o wide --context hub",
		"list-json":      "placement list gpu -n default -o json --context hub",
		"list-namespace": "placement list -n shop --context hub",
		"list-name":      "placement list lonely/web drifted -o name --context hub",
		"list-missing":   "placement list nosuch --context hub",
		"list-not-a-hub": "placement list --context spoke",
		"list-old":       "get placements --context hub",
		"create":         "placement create new -n shop --count 2 --label-selectors region=eu --context hub",
		"create-dry-run": "placement create new -n default --clustersets prod --count 3 " +
			"--label-selectors region_in_(eu,apac),env=canary --claim-selectors platform.open-cluster-management.io=aws " +
			"--cel has(managedCluster.status) --prioritizer Steady:0,ResourceAllocatableCPU:-2 --prioritizer AddOn:usage:cpu:3 " +
			"--toleration gpu=true:NoSelect:300s --toleration * --spread region:2:DoNotSchedule --spread claim:zone " +
			"--group canary=env=canary --group aws=claim:platform.open-cluster-management.io=aws --clusters-per-group 25% " +
			"--sort-by Score --context hub --dry-run",
		"create-and": "placement create new -n default --and --label-selectors region=apac,env!=canary " +
			"--claim-selectors platform.open-cluster-management.io=aws --cel true --exact --prioritizers BuiltIn:Balance:2 " +
			"--context hub --dry-run",
		"create-groups": "placement create rolled --clusters-per-group 25% --group prod-canary-west=region=west " +
			"--group prod-canary-east=region=east --context hub --dry-run",
		"create-again": "placement create web --clustersets prod --count 2 --label-selectors region=apac " +
			"--prioritizer ResourceAllocatableCPU:2 --context hub",
		"create-other":     "placement create web --clustersets prod --count 1 --context hub",
		"create-overwrite": "placement create web --clustersets prod --count 1 --overwrite --context hub",
		"create-diff":      "placement create web --clustersets prod --count 1 --label-selectors region=apac --diff --context hub",
		"create-unbound":   "placement create new --clustersets dev --context hub",
		"create-nothing":   "placement create new -n nowhere --context hub",
		"create-old":       "create placement new -n shop --clustersets global --context hub --dry-run -o json",
		"delete-asks":      "placement delete web lonely/web --context hub",
		"delete":           "placement delete web --context hub --yes",
		"delete-dry-run":   "placement delete web --context hub --dry-run",
		"delete-none":      "placement delete nosuch --context hub",
		"help":             "placement --help",
		"help-create":      "placement create --help",
	}, "list")
}

// check lists each problem under its code, and the healthy placements in one line.
func TestWhatCheckFindsOfPlacements(t *testing.T) {
	compareLines(t, "", map[string]string{
		"check":              "check --context hub --skip OCM0206",
		"check-some":         "check placement web gpu lonely/web shop/scores --context hub",
		"check-wrong":        "check placement wrong --context hub",
		"check-well":         "check placement web --context hub --fail-on warning",
		"check-json":         "check placement gpu --context hub -o json",
		"check-name":         "check placement wrong lonely/web --context hub -o name",
		"check-missing":      "check placement nosuch --context hub",
		"check-no-name":      "check placement --context hub",
		"check-wrong-name":   "check placement a/b/c --context hub",
		"check-not-a-hub":    "check placement web --context spoke",
		"check-explain-code": "check --explain OCM0505",
	})
}

// The problems that the placements of the other tests do not have.
func TestCheckNamesWhatKeepsAPlacementShort(t *testing.T) {
	for name, tc := range map[string]struct{ spec, more, code, title, cause string }{
		"an empty set": {
			spec:  `{clusterSets: [bare]}`,
			code:  "OCM0503",
			title: "the cluster sets that it selects from have no clusters",
			cause: "All ManagedClusterSets [bare] have no member ManagedCluster",
			more: "---\napiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: bare}\n" +
				"---\napiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n" +
				"metadata: {name: bare, namespace: default}\nspec: {clusterSet: bare}\n",
		},
		"more wanted than fit": {
			spec:  `{clusterSets: [prod], numberOfClusters: 9}`,
			code:  "OCM0505",
			title: "it selects 5 clusters of 9 that it wants",
			cause: "6 clusters in its sets, 6 fit its predicates, 5 of them have no taint that keeps them out",
		},
		"spread too strictly": {
			spec: `{clusterSets: [prod], numberOfClusters: 5, spreadPolicy: {spreadConstraints: [` +
				`{topologyKey: region, topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}]}}`,
			code:  "OCM0505",
			title: "it selects 3 clusters of 5 that it wants",
			cause: "6 clusters in its sets, 6 fit its predicates, 5 of them have no taint that keeps them out, 3 fit its spread constraints",
		},
		"taints keep all out": {
			spec: `{clusterSets: [prod], predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {name: cluster3}}}}]}`,
			more: "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n" +
				"metadata: {name: far, labels: {name: cluster3, cluster.open-cluster-management.io/clusterset: prod}}\n" +
				"spec: {taints: [{key: away, effect: NoSelect}]}\n",
			code:  "OCM0505",
			title: "taints that it does not tolerate keep out 1 cluster, all that fit",
			cause: "away (1)",
		},
		"a score that nobody has": {
			spec:  `{clusterSets: [prod], prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: none, scoreName: x}}}]}}`,
			code:  "OCM0507",
			title: "no cluster has the score none/x that it ranks by",
			cause: "counts 0",
		},
		"a prioritizer that nobody knows": {
			spec:  `{clusterSets: [prod], prioritizerPolicy: {configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: Spread}}]}}`,
			code:  "OCM0506",
			title: "incorrect builtin prioritizer: Spread",
			cause: "spec.prioritizerPolicy.configurations[0].scoreCoordinate.builtIn",
		},
		"nothing": {spec: `{clusterSets: [prod], numberOfClusters: 2}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPlacementsScene(t)
			text, err := os.ReadFile("testdata/placements.yaml")
			require.NoError(t, err)
			s.hub = apitest.New(t, created, string(text)+tc.more+
				"---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n"+
				"metadata: {name: short, namespace: default}\nspec: "+tc.spec+
				"\nstatus: {conditions: [{type: PlacementSatisfied, status: \"True\", reason: R, message: m}]}\n")
			t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub}))
			var got struct {
				Areas []struct {
					Findings []struct{ Code, Severity, Title, Cause, Fix string }
				}
			}
			require.NoError(t, json.Unmarshal([]byte(s.run("check", "placement", "short", "-n", "default", "-o", "json", "--context", "hub").out), &got))
			require.Len(t, got.Areas, 1)
			require.Len(t, got.Areas[0].Findings, 1, "%+v", got)
			f := got.Areas[0].Findings[0]
			if tc.code == "" {
				require.Equal(t, "ok", f.Severity, "%+v", f)
				return
			}
			require.Equal(t, tc.code, f.Code, "%+v", f)
			require.Equal(t, tc.title, f.Title)
			require.Contains(t, f.Cause, tc.cause)
			require.NotEmpty(t, f.Fix)
		})
	}
}

func TestNamesOfPlacementsAreCompleted(t *testing.T) {
	for line, want := range map[string]string{
		"work list --context hub --placement default/g":       "default/gpu\ndefault/groups\n:4\n",
		"clusterset add x --context hub --placement lon":      "lonely/web\n:4\n",
		"check --context hub placement shop":                  "shop/scores\n:4\n",
		"check --context hub -n default placement gpu dri":    "drifted\n:4\n",
		"check --context hub cluster cluster1 cluster2 clust": "cluster3\ncluster4\ncluster5\ncluster6\ncluster7\ncluster8\n:4\n",
	} {
		t.Run(line, func(t *testing.T) {
			require.Equal(t, want, newPlacementsScene(t).run(append([]string{"__complete"}, strings.Fields(line)...)...).out)
		})
	}
}

// Every wrong value is reported with its flag or field and a fix, before any request to
// the hub.
func TestPlacementsThatCannotBeMade(t *testing.T) {
	for name, tc := range map[string]struct{ flags, want, fix string }{
		"a name":                     {"Web_1", `"Web 1" cannot be the name`, "NAMESPACE/NAME"},
		"a long name":                {strings.Repeat("a", 64), "cannot be the name", "63"},
		"no name":                    {"", "the name of the placement is missing", "--help"},
		"a negative count":           {"x --count -1", "spec.numberOfClusters", "0 or more"},
		"a count that is none":       {"x --count two", `"two"`, "--count 2"},
		"a selector":                 {"x --label-selectors a_in", "--label-selectors", "region=eu"},
		"a selector of everything":   {"x --label-selectors=", "--label-selectors", "leave --label-selectors out"},
		"a claim":                    {"x --claim-selectors =a", "--claim-selectors", "aws"},
		"no expression":              {"x --cel=", "--cel", "leave --cel out"},
		"an expression":              {"x --cel nonsense(", "celExpressions[0]", "true or false"},
		"an expression with no bool": {"x --cel 1+1", "celExpressions[0]", "true or false"},
		"a prioritizer":              {"x --prioritizer Spread", `no prioritizer "Spread"`, "Balance, Steady"},
		"a weight":                   {"x --prioritizer Steady:11", "-10 to 10", "Steady:2"},
		"a weight that is none":      {"x --prioritizer Steady:much", "-10 to 10", "Steady:2"},
		"a score":                    {"x --prioritizer AddOn:usage", "AddOn:RESOURCE:SCORE", "AddOn:usage:cpuAvailable"},
		"nothing exactly":            {"x --exact", "none is", "add --prioritizer"},
		"a toleration":               {"x --toleration =x", "names no taint", "gpu=true"},
		"an effect":                  {"x --toleration gpu:NoExecute", "neither an effect", "gpu=true"},
		"a time":                     {"x --toleration gpu:0s", "neither an effect", "gpu=true"},
		"a spread":                   {"x --spread :2", "MAXSKEW", "region"},
		"a skew":                     {"x --spread region:0", "not a number above 0", "region:2"},
		"an answer to a skew":        {"x --spread region:1:Never", "neither DoNotSchedule nor", "region:2"},
		"a group":                    {"x --group canary", "NAME=SELECTOR", "canary=env=canary"},
		"the name of a group":        {"x --group a_b=c=d", "groupName", "letters"},
		"the selector of a group":    {"x --group canary=a_b", "--group", "canary=env=canary"},
		"the size of groups":         {"x --clusters-per-group 0", "--clusters-per-group", "25%"},
		"a share":                    {"x --clusters-per-group 250%", "clustersPerDecisionGroup", "100%"},
		"an order":                   {"x --sort-by Age", "sortBy", "ClusterName or Score"},
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields("placement create --context nosuch " + tc.flags)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "_", " ")
			}
			got := newPlacementsScene(t).run(words...)
			require.Equal(t, 2, got.code, got.err)
			require.Empty(t, got.out)
			first, fix, found := strings.Cut(got.err, "  fix: ")
			require.True(t, found, got.err)
			require.Contains(t, first, tc.want)
			require.Contains(t, fix, tc.fix)
		})
	}
}

// A replaced spec leaves nothing behind: fields that only the former spec had are gone,
// and a second run changes nothing.
func TestOverwriteReplacesTheWholeSpec(t *testing.T) {
	s := newPlacementsScene(t)
	line := strings.Fields("placement create web --clustersets prod --count 1 --overwrite --context hub")
	require.Contains(t, s.run(line...).out, "/web configured")
	require.Contains(t, s.run(line...).out, "/web unchanged")
	var list struct {
		Items []struct {
			Wanted                   int
			Predicates, Prioritizers []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.run("placement", "list", "default/web", "-o", "json", "--context", "hub").out), &list))
	require.Len(t, list.Items, 1)
	require.Equal(t, 1, list.Items[0].Wanted)
	require.Empty(t, cmp.Diff([]string(nil), append(list.Items[0].Predicates, list.Items[0].Prioritizers...)))
}
