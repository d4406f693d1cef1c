// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// absentees has, for every command that removes something by name, a command line with a
// misspelled name, and the name to suggest.
var absentees = map[string]struct{ line, near string }{
	"hub token revoke":  {"abc124", "abc123"},
	"cluster deny":      {"clusetr1", "cluster1"},
	"cluster remove":    {"clusetr1", "cluster1"},
	"clusterset delete": {"tesst", "test"},
	"clusterset unbind": {"eur -n shop", "eu"},
	"placement delete":  {"shop/wbe", "web"},
	"work delete":       {"webb -c cluster1", "web"},
	"addon delete":      {"helo", "hello"},
}

// TestANameThatNothingHasIsNotFound: deleting an object that does not exist fails and
// suggests a name, or does nothing with --ignore-not-found.
func TestANameThatNothingHasIsNotFound(t *testing.T) {
	for path := range lines {
		verb := path[strings.LastIndex(path, " ")+1:]
		if slices.Contains([]string{"revoke", "deny", "remove", "delete", "unbind"}, verb) {
			require.Contains(t, absentees, path, "a command that removes something by name needs a line here")
		}
	}
	for path, tc := range absentees {
		words := append(strings.Fields(path+" "+tc.line), "--context", "hub", "--yes")
		for _, dry := range []string{"--dry-run=none", "--dry-run"} {
			s := newScene(t)
			got := s.run(append(words, dry)...)
			require.Equal(t, ui.ExitFailed, got.code, path)
			require.Empty(t, got.out, path)
			require.Contains(t, got.err, `did you mean "`+tc.near+`"?`, path)
			require.Contains(t, got.err, "fix:   kubectl ocm ", path)
			ignored := s.run(append(words, dry, "--ignore-not-found", "-o", "json")...)
			require.Zero(t, ignored.code, ignored.err)
			require.Empty(t, s.hub.Changes(), path)
		}
	}
}

// TestANameThatIsSomewhereElse: the error names the objects that do exist.
func TestANameThatIsSomewhereElse(t *testing.T) {
	for line, want := range map[string]string{
		"work delete web -c cluster3 --yes":      "there is cluster1/web, cluster2/web",
		"placement delete web -n other --yes":    "there is default/web, lonely/web",
		"placement explain web -n other":         "there is default/web, lonely/web",
		"cluster list clustr1":                   `did you mean "cluster1"?`,
		"work tree webb":                         `did you mean "web"?`,
		"work wait webb":                         `did you mean "web"?`,
		"work apply x -f - -c clustr1":           `did you mean "cluster1"?`,
		"clusterset add prodd -c cluster1":       `did you mean "prod"?`,
		"addon status metrcs":                    `did you mean "metrics"?`,
		"addon disable metrcs -c cluster1 --yes": `did you mean "metrics"?`,
		"addon list metrcs":                      `did you mean "metrics"?`,
		"work list --sets shp":                   `did you mean "shop"?`,
	} {
		s := newScene(t)
		if strings.Contains(want, "default/") || strings.Contains(want, "metrics") || strings.Contains(want, "shop") {
			s = newPlacementsScene(t)
		}
		got := s.runIn(manifest, append(strings.Fields(line), "--context", "hub")...)
		require.Equal(t, ui.ExitFailed, got.code, line)
		require.Contains(t, got.err, "cause: "+want, line)
	}
}
