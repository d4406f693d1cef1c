// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
)

// newLiveScene returns a hub with a work that was sent to several clusters, and one of
// those clusters, whose objects others have changed too.
func newLiveScene(t *testing.T) *scene {
	t.Helper()
	s := newWorksScene(t, "live", "worksets")
	text, err := os.ReadFile("testdata/live-spoke.yaml")
	require.NoError(t, err)
	s.spoke = apitest.New(t, created, string(text))
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub, "spoke": s.spoke}))
	return s
}

// The output of comparing works with the objects on their clusters, of pruning works, and
// of missing rights of an executor. Nothing is changed.
func TestWhatIsPrintedOfLiveWorks(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
	}{
		"diff":             {"work diff app --live -c cluster1 --context hub", 1},
		"diff-two":         {"work diff app --live -c cluster1,cluster2 --context hub", 1},
		"diff-no-answer":   {"work diff app --live -c cluster2 --context hub", 1},
		"diff-same":        {"work diff web --live -c cluster1 --context hub", 0},
		"diff-file":        {"work diff web -f - --live -c cluster1 --context hub", 1},
		"diff-set":         {"work diff stays --live --placement apps/everywhere --context hub", 1},
		"diff-missing":     {"work diff nosuch --live -c cluster1 --context hub", 2},
		"diff-no-target":   {"work diff app --live --context hub", 2},
		"diff-no-file":     {"work diff app -c cluster1 --context hub", 2},
		"diff-spoke":       {"work diff app --live -c cluster1 --context hub --spoke-context spoke", 1},
		"diff-spoke-two":   {"work diff app --live -c cluster1,cluster2 --context hub --spoke-context spoke", 2},
		"diff-spoke-alone": {"work diff app -f - -c cluster1 --context hub --spoke-context spoke", 2},
		"diff-help":        {"work diff --help", 0},
		"prune-dry-run":    {"work apply app -f - -c cluster1 --prune --context hub --dry-run", 0},
		"prune-json":       {"work apply app -f - -c cluster1 --prune --context hub --dry-run -o json", 0},
		"prune-diff":       {"work apply app -f - -c cluster1 --prune --context hub --diff", 1},
		"prune-asks":       {"work apply app -f - -c cluster1 --prune --context hub", 6},
		"executor-dry-run": {"work apply robot -f - -c cluster1 --executor robots/robot --context hub --dry-run", 0},
		"executor-wrong":   {"work apply robot -f - -c cluster1 --executor robot --context hub", 2},
		"executor-missing": {
			"work apply robot -f - -c cluster1 --executor robots/nosuch --context hub --spoke-context spoke",
			6,
		},
		"executor-lacks": {
			"work apply robot -f - -c cluster1 --executor robots/robot --context hub --spoke-context spoke",
			6,
		},
		"executor-several": {"work apply robot -f - --all --executor robots/robot --context hub --spoke-context spoke", 2},
		"files-both":       {"work apply app -f - -k . -c cluster1 --context hub", 2},
		"kustomize-none":   {"work apply app -k nosuch -c cluster1 --context hub", 2},
		"kustomize-remote": {"work apply app -k https://example.org/org/repo -c cluster1 --context hub", 2},
		"list-note":        {"work list noted --context hub -o wide", 0},
		"tree-note":        {"work tree noted --context hub", 0},
		"help":             {"work apply --help", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLiveScene(t)
			words := strings.Fields(c.line)
			got := s.runIn(manifest, words...)
			goldentest.Compare(t, "golden/live-"+name, transcript(words, got))
			require.Equal(t, c.code, got.code, got.err)
			require.Empty(t, s.hub.Changes())
			require.Empty(t, s.spoke.Changes())
			require.NotContains(t, got.out, "b3RoZXI=", "a secret")
			require.NotContains(t, got.out, "c2VjcmV0", "a secret")
		})
	}
}

// Works that this command sent are deleted from clusters that are no longer targets;
// works of others stay. Objects stay if their work says so.
func TestApplyPrunes(t *testing.T) {
	s := newLiveScene(t)
	got := s.runIn(manifest, "work", "apply", "app", "-f", "-", "-c", "cluster2", "--prune", "--yes", "--context", "hub")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "manifestwork/app deleted on cluster1\nmanifestwork/app configured on cluster2\n", got.out)
	require.Equal(t, []string{"cluster2", "cluster3", "cluster9"}, clustersOf(s, "app"))
	again := s.runIn(manifest, "work", "apply", "app", "-f", "-", "-c", "cluster2", "--prune", "--context", "hub")
	require.Zero(t, again.code, "nothing is left to confirm: "+again.err)
}

// clustersOf returns the clusters that have a work of the name.
func clustersOf(s *scene, name string) []string {
	return strings.Fields(s.run("work", "list", name, "--context", "hub", "-o", "jsonpath={.items[*].cluster}").out)
}

// Nothing is pruned if the work could not be sent to every cluster.
func TestAFailedApplyPrunesNothing(t *testing.T) {
	s := newLiveScene(t)
	got := s.runIn(manifest, "work", "apply", "web", "-f", "-", "-c", "cluster2", "--prune", "--yes", "--context", "hub")
	require.Equal(t, 6, got.code, "the work of cluster2 belongs to a set: "+got.out)
	require.Equal(t, []string{"cluster1", "cluster2"}, clustersOf(s, "web"))
}

func TestAKustomizationIsSent(t *testing.T) {
	s := newLiveScene(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/kustomization.yaml", []byte("resources: [m.yaml]\nnamePrefix: prod-\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/m.yaml", []byte(manifest), 0o600))
	got := s.run("work", "apply", "kustomized", "-k", dir, "-c", "cluster1", "--context", "hub")
	require.Zero(t, got.code, got.err)
	require.Contains(t, s.run("work", "tree", "kustomized", "--context", "hub").out, "default/prod-greeting")
}
