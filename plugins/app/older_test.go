// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// row matches a row of the table of the guide: a line of the older CLI, and ours.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|$")

// argument matches a line whose flag is an argument here.
var argument = regexp.MustCompile("--names |--cluster-name |--hub-registration|^accept --clusters ")

// ids matches the random id of a token.
var ids = regexp.MustCompile(`(join-token-|"id": ")[0-9a-z]{6}`)

// TestEveryLineOfTheOlderCLI runs each line of the guide and ours beside it: both print the
// same, and the older one also prints how it is spelled now.
func TestEveryLineOfTheOlderCLI(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/older-cli.md")
	require.NoError(t, err)
	rows := row.FindAllStringSubmatch(string(guide), -1)
	require.Greater(t, len(rows), 30)
	root := app.Root(&ui.UI{Streams: ui.Process(), Program: "kubectl ocm"})
	for _, r := range rows {
		t.Run(r[1], func(t *testing.T) {
			theirs, ours := strings.Fields(r[1]), strings.Fields(r[2])
			cmd, _, err := root.Find(ours)
			require.NoError(t, err)
			end := []string{"--context", "hub"}
			if ours[0] == "join" || ours[0] == "unjoin" || ours[0] == "check" {
				end[1] = "spoke"
			}
			if cmd.Flags().Lookup("dry-run") != nil {
				end = append(end, "--dry-run")
			}
			if cmd.Flags().Lookup("yes") != nil {
				end = append(end, "--yes")
			}
			if cmd.CommandPath() == "kubectl ocm hub clean" {
				end = append(end, "--force")
			}
			s := newScene(t)
			t.Chdir(t.TempDir())
			require.NoError(t, os.WriteFile("app.yaml", []byte(manifest), 0o600))
			old, now := s.run(append(theirs, end...)...), s.run(append(ours, end...)...)
			require.NotContains(t, []int{ui.ExitUsage, ui.ExitRefused}, now.code, now.err)
			require.Equal(t, now.code, old.code, old.err)
			require.Equal(t, ids.ReplaceAllString(now.out, "$1"), ids.ReplaceAllString(old.out, "$1"))
			path := strings.TrimPrefix(cmd.CommandPath(), "kubectl ocm ")
			if renamed := argument.MatchString(r[1]); renamed || !strings.HasPrefix(r[1], path) {
				require.Regexp(t, `(?m)^note: ".+" is now "kubectl ocm `+path+`.*"$`, old.err)
			}
		})
	}
}

// TestWhatHasNoCommandInItsPlace: the answer says what to do instead.
func TestWhatHasNoCommandInItsPlace(t *testing.T) {
	for _, line := range []string{"install hub-addon --names argocd", "uninstall hub-addon", "create sampleapp x",
		"config use-context x", "plugin list"} {
		got := newScene(t).run(strings.Fields(line)...)
		require.Equal(t, ui.ExitUsage, got.code, line)
		require.Regexp(t, `error: there is no command ".+" here\n  fix:   .+`, got.err, line)
	}
}

// TestFlagsBeforeAnOlderCommand: flags of every command may stand before it, and what follows
// "--" stays as it is. The flags of an upgrade have other names too.
func TestFlagsBeforeAnOlderCommand(t *testing.T) {
	for _, line := range []string{"--context hub -q get clusters -o name", "--context=hub get clusters --output=table -o name", "--context hub clusters -o name"} {
		got := newScene(t).run(strings.Fields(line)...)
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.out, "managedcluster.cluster.open-cluster-management.io/cluster1\n", line)
	}
	upgraded := newScene(t).run(strings.Fields("upgrade klusterlet --bundle-version v0.2.0 --context spoke")...)
	require.Contains(t, upgraded.err, `note: "upgrade klusterlet --bundle-version" is now "kubectl ocm join --upgrade --version"`)
	require.Contains(t, upgraded.err, "has no agent to upgrade")
	got := newScene(t).run("clusters", "get", "cluster1", "--context", "hub", "-o", "name")
	require.Equal(t, "managedcluster.cluster.open-cluster-management.io/cluster1\n", got.out)
}
