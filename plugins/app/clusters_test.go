// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// newClustersScene returns a hub whose clusters have sets, placements, add-ons and works.
func newClustersScene(t *testing.T) *scene {
	t.Helper()
	return newSceneOf(t, "placements", "clusters")
}

func TestWhatIsPrintedOfOneCluster(t *testing.T) {
	for name, line := range map[string]string{
		"get":               "cluster get cluster1 --context hub",
		"get-json":          "cluster get cluster1 -o json --context hub",
		"get-name":          "cluster get cluster1 -o name --context hub",
		"get-color":         "cluster get cluster1 --color always --context hub",
		"get-missing":       "cluster get clutser1 --context hub",
		"get-two":           "cluster get cluster1 cluster2 --context hub",
		"get-not-a-hub":     "cluster get cluster1 --context spoke",
		"tree":              "cluster tree cluster1 --context hub",
		"tree-two":          "cluster tree cluster1 cluster3 --unfold --context hub",
		"tree-yaml":         "cluster tree cluster2 -o yaml --context hub",
		"tree-missing":      "cluster tree cluster1 nosuch --context hub",
		"label-dry-run":     "cluster label cluster1 tier=gold env- --context hub --dry-run",
		"label-server":      "cluster label cluster1 tier=gold --context hub --dry-run=server -o json",
		"label-diff":        "cluster label cluster1 tier=gold --context hub --diff",
		"label-no-diff":     "cluster label cluster1 tier- --context hub --diff",
		"label-other":       "cluster label cluster1 cluster2 region=us --context hub",
		"label-set":         "cluster label cluster1 cluster.open-cluster-management.io/clusterset=prod --context hub",
		"label-drop":        "cluster label cluster1 cluster.open-cluster-management.io/clusterset- --context hub",
		"label-hubs":        "cluster label cluster1 feature.open-cluster-management.io/addon-metrics=available --context hub",
		"label-wrong-key":   "cluster label cluster1 -l x=y en_v/=prod --context hub",
		"label-wrong-value": "cluster label cluster1 env=pr:od --context hub",
		"label-both":        "cluster label cluster1 env=prod env- --context hub",
		"label-none":        "cluster label cluster1 --context hub",
		"label-nobody":      "cluster label env=prod --context hub",
		"label-missing":     "cluster label clutser1 env=prod --context hub",
		"taint":             "cluster taint cluster1 gpu=true:PreferNoSelect -o name --context hub",
		"taint-drops":       "cluster taint --all gpu=true:NoSelect --context hub",
		"taint-effect":      "cluster taint cluster1 gpu=true:NoSchedule --context hub",
		"taint-no-effect":   "cluster taint cluster1 gpu=true --context hub",
		"taint-hubs":        "cluster taint cluster1 cluster.open-cluster-management.io/unreachable- --context hub",
		"taint-twice":       "cluster taint cluster1 gpu=a:NoSelect gpu=b:NoSelect --context hub",
		"taint-none":        "cluster taint cluster1 --context hub",
		"cordon-asks":       "cluster cordon cluster1 --context hub",
		"cordon-dry-run":    "cluster cordon cluster1 --context hub --dry-run",
		"cordon-nobody":     "cluster cordon --context hub",
		"uncordon":          "cluster uncordon cluster1 --context hub",
		"help":              "cluster --help",
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(line)
			widths := map[string]int{"": 0}
			if name == "get" || name == "tree" {
				widths = map[string]int{"": 0, "-80": 80, "-200": 200}
			}
			for suffix, width := range widths {
				s := newClustersScene(t)
				s.width = width
				goldentest.Compare(t, "golden/one-cluster-"+name+suffix, transcript(words, s.run(words...)))
			}
		})
	}
}

// TestClustersAreChangedOnce: the second run changes nothing, and sends no write.
func TestClustersAreChangedOnce(t *testing.T) {
	s := newClustersScene(t)
	for _, tc := range []struct{ line, done string }{
		{"cluster label cluster1 tier=gold env-", "managedcluster/cluster1 labelled\n"},
		{"cluster label cluster1 tier=silver --overwrite", "managedcluster/cluster1 labelled\n"},
		{"cluster taint cluster1 gpu=true:NoSelectIfNew rack=7:PreferNoSelect", "managedcluster/cluster1 tainted\n"},
		{"cluster taint cluster1 gpu=false:NoSelectIfNew --overwrite", "managedcluster/cluster1 tainted\n"},
		{"cluster taint cluster1 gpu- rack:PreferNoSelect-", "managedcluster/cluster1 tainted\n"},
		{"cluster cordon cluster1 --keep", "managedcluster/cluster1 cordoned\n"},
		{"cluster cordon cluster1 --yes", "managedcluster/cluster1 cordoned\n"},
		{"cluster uncordon cluster1", "managedcluster/cluster1 uncordoned\n"},
	} {
		words := append(strings.Fields(tc.line), "--context", "hub")
		s.hub.Busy(2) // others write the cluster at the same time
		before := len(s.hub.Changes())
		first := s.run(words...)
		require.Zero(t, first.code, first.err)
		require.Equal(t, tc.done, first.out, tc.line)
		require.Greater(t, len(s.hub.Changes()), before)
		changes := s.hub.Changes()
		second := s.run(words...)
		require.Zero(t, second.code, second.err)
		require.Equal(t, "managedcluster/cluster1 unchanged\n", second.out, tc.line)
		require.Equal(t, changes, s.hub.Changes(), tc.line)
	}
	got := s.run("cluster", "get", "cluster1", "--context", "hub", "-o", "jsonpath={.labels.tier} {.labels.env} {.taints}")
	require.Equal(t, "silver  ", got.out)
}

// TestTaintsThatAreThereStay: what others tainted keeps its place, and the time the hub gave it.
func TestTaintsThatAreThereStay(t *testing.T) {
	s := newClustersScene(t)
	got := s.run("cluster", "cordon", "cluster3", "--context", "hub", "--keep", "--dry-run=server", "-o", "jsonpath={.items[0].object.spec.taints}")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "cluster.open-cluster-management.io/unreachable")
	require.Contains(t, got.out, "cluster.open-cluster-management.io/cordoned")
	require.Empty(t, s.hub.Changes())
}

// TestACordonThatTakesClustersFromPlacementsIsConfirmed: without a terminal, --yes is needed.
func TestACordonThatTakesClustersFromPlacementsIsConfirmed(t *testing.T) {
	s := newClustersScene(t)
	got := s.run("cluster", "cordon", "cluster1", "--context", "hub")
	require.Equal(t, ui.ExitRefused, got.code)
	require.Contains(t, got.err, "placement default/web: drops cluster1; what it brought there is removed")
	require.Empty(t, s.hub.Changes())
	kept := s.run("cluster", "cordon", "cluster1", "--keep", "--context", "hub")
	require.Zero(t, kept.code, kept.err)
}
