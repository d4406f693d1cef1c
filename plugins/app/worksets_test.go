// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
)

// The output when a replica set exists already, or works of its name do. A refused
// command changes nothing.
func TestASetOfWorksThatIsThere(t *testing.T) {
	const apply = " -f - --placement apps/everywhere --context hub"
	for name, c := range map[string]struct {
		line string
		code int
	}{
		"apply-keeps":             {"work apply multi --dry-run" + apply, 0},
		"apply-limit":             {"work apply multi --dry-run --rollout progressive --max-concurrency 3" + apply, 0},
		"apply-other-rollout":     {"work apply multi --dry-run --rollout all" + apply, 0},
		"apply-other-placement":   {"work apply foreign" + apply, 6},
		"apply-being-deleted":     {"work apply dying" + apply, 1},
		"apply-beside-works":      {"work apply single" + apply, 6},
		"apply-beside-works-diff": {"work apply single --diff" + apply, 6},
		"wait-any-namespace":      {"work wait stays --context hub --timeout 3s", 5},
		"wait-placement":          {"work wait stays --placement apps/everywhere --context hub", 0},
		"wait-not-available":      {"work wait halfway --placement apps/everywhere --context hub --timeout 3s", 5},
		"wait-one-cluster":        {"work wait halfway -c cluster1 --context hub", 0},
		"wait-still-there": {
			"work wait stays --for deleted --placement apps/everywhere --context hub --timeout 3s",
			4,
		},
		"wait-to-come":           {"work wait taking --placement apps/everywhere --context hub --timeout 3s", 5},
		"wait-gone":              {"work wait dying --for deleted --placement apps/everywhere --context hub", 0},
		"delete-shared":          {"work delete multi --placement apps/everywhere --context hub --yes", 6},
		"delete-other-placement": {"work delete foreign --placement apps/everywhere --context hub --yes", 6},
		"delete-force":           {"work delete stays --placement apps/everywhere --context hub --yes --force", 6},
		"delete-orphan-template": {"work delete taking --placement apps/everywhere --context hub --yes --orphan", 6},
		"delete-orphan-work":     {"work delete halfway --placement apps/everywhere --context hub --yes --orphan", 6},
		"delete-orphan": {
			"work delete stays --placement apps/everywhere --context hub --yes --orphan --wait=false",
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorksScene(t, "worksets")
			words := strings.Fields(c.line)
			got := s.runIn(manifest, words...)
			require.Equal(t, c.code, got.code, got.err)
			if c.code != 0 {
				require.Empty(t, s.hub.Changes())
			}
			goldentest.Compare(t, "golden/set-"+name, transcript(words, got))
		})
	}
}

// A replica set that is applied for one of its placements keeps the others and their
// rollouts.
func TestApplyLeavesTheOtherPlacementsOfASet(t *testing.T) {
	s := newWorksScene(t, "worksets")
	apply := []string{"work", "apply", "multi", "-f", "-", "--placement", "apps/everywhere", "--context", "hub"}
	require.Contains(t, s.runIn(manifest, apply...).out, "/multi configured")
	require.Contains(t, s.runIn(manifest, apply...).out, "/multi unchanged")
	listed := s.run("work", "list", "--sets", "multi", "--context", "hub", "-o", "wide").out
	require.Regexp(t, `(?m)^apps +multi +few,everywhere .* mixed `, listed)
	require.Contains(t, s.runIn(manifest, append(apply, "--rollout", "all")...).out, "/multi configured")
	require.Contains(t, s.run("work", "list", "--sets", "multi", "--context", "hub", "-o", "json").out, `"few",`)
}
