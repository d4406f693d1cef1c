// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

func TestDurationsMayBeBareSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"60": time.Minute, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute} {
		var d time.Duration
		flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
		DurationVar(flags, &d, "timeout", time.Hour, "")
		require.NoError(t, flags.Parse([]string{"--timeout", text}))
		require.Equal(t, want, d)
	}
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	DurationVar(flags, new(time.Duration), "timeout", time.Hour, "")
	require.Error(t, flags.Parse([]string{"--timeout", "soon"}))
}

func TestDryRunTakesOldAndNewSpellings(t *testing.T) {
	quiet := &ui.UI{Quiet: true}
	for word, want := range map[string]string{
		"--dry-run":        "client",
		"--dry-run=server": "server",
		"--dry-run=true":   "client",
		"--dry-run=false":  "none",
		"--wait":           "none",
	} {
		c := &Change{}
		flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
		c.AddFlags(flags, Parts{Diff: true, Wait: true, Yes: true})
		require.NoError(t, flags.Parse([]string{word}))
		require.NoError(t, c.Check(quiet))
		require.Equal(t, want, c.DryRun, word)
		require.Equal(t, want != "none", c.Reads())
	}
	for _, words := range [][]string{{"--dry-run=maybe"}, {"--dry-run", "--diff"}, {"--timeout", "0"}, {"-o", "yml"}} {
		c := &Change{}
		flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
		c.AddFlags(flags, Parts{Diff: true, Wait: true})
		require.NoError(t, flags.Parse(words))
		require.Equal(t, ui.ExitUsage, ui.Code(c.Check(quiet)), words)
	}
}

func TestGatesAreReadByName(t *testing.T) {
	var g Gates
	require.NoError(t, g.Set("A=true,B=false"))
	require.NoError(t, g.Set("C=true"))
	require.Equal(t, "A=true,B=false,C=true", g.String())
	for _, wrong := range []string{"A", "A=maybe", "=true"} {
		require.Error(t, g.Set(wrong))
	}
}

func TestReleases(t *testing.T) {
	r := &Release{Version: "0.2.0", Registry: "r.example.org/x/"}
	require.NoError(t, r.Check())
	hub, agent := r.Images("v0.1.0")
	require.Equal(t, "r.example.org/x/ocm-hub:v0.2.0", hub)
	require.Equal(t, "r.example.org/x/ocm-agent:v0.2.0", agent)
	require.Error(t, (&Release{Version: "latest"}).Check())
	require.Error(t, (&Release{Image: "a b"}).Check())
}

func TestTargetsNeverMeanAllByBeingEmpty(t *testing.T) {
	require.Equal(t, ui.ExitUsage, ui.Code((&Targets{}).Check(true)))
	require.NoError(t, (&Targets{}).Check(false))
	both := &Targets{}
	both.All, both.Clusters = true, []string{"a"}
	require.Equal(t, ui.ExitUsage, ui.Code(both.Check(true)))
	wrong := &Targets{}
	wrong.Selector = "a in"
	require.Equal(t, ui.ExitUsage, ui.Code(wrong.Check(true)))
}

func TestRowsAreTheSameWhenOnlyTheirAgeChanged(t *testing.T) {
	require.True(t, isSameRow([]string{"a", "Available", "8s"}, []string{"a", "Available", "10s"}))
	require.False(t, isSameRow([]string{"a", "Available", "8s"}, []string{"a", "Unknown", "10s"}))
}

// Exit code 1 of a diff means that there are differences.
func TestADiffThatFailsHasItsOwnExitCode(t *testing.T) {
	for diff, want := range map[bool]int{true: ui.ExitUsage, false: ui.ExitFailed} {
		c := Change{Diff: diff}
		require.Equal(t, want, ui.Code(c.Diffed(&fleet.Error{Kind: fleet.Failed, Message: "no cluster answered"})))
	}
}
