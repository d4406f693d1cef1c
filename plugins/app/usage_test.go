// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// free are the flags whose values the user makes up, or that take files.
var free = strings.Fields(`
	agent-namespace as as-group as-uid annotations apiserver-url auto-accept bundle ca-file cel certificate-authority claim-selectors
	client-certificate client-key clusters clusters-per-group config count description dir display-name executor feature-gates feedback filename
	group hub-apiserver hub-ca-hash hub-permission hub-token image image-registry include-secrets install-namespace klusterlet kubeconfig kustomize
	label-selectors labels local-port managed-cluster-kubeconfig max-concurrency prioritizer proxy-ca-file proxy-url replicas request-timeout requester selector
	set sort-by spread timeout token-file toleration ttl uses v version wait with-cluster`)

// named are the commands whose argument is a new name.
var named = []string{"addon create", "clusterset create", "hub backup", "hub restore", "join", "placement create", "placement simulate", "work trace"}

// TestEveryArgumentAndValueIsCompleted: a command completes what it takes, unless only the user
// can know it.
func TestEveryArgumentAndValueIsCompleted(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "kubectl ocm ")
		if words := strings.Fields(cmd.Use); !cmd.HasSubCommands() && len(words) > 1 && words[1] != "[flags]" && !slices.Contains(named, path) {
			require.True(t, cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0, "%s does not complete its arguments", path)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, completed := cmd.GetFlagCompletionFunc(f.Name); !completed && f.Value.Type() != "bool" && !f.Hidden {
				require.Contains(t, free, f.Name, "%s does not complete the values of --%s", path, f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "completion" && c.Name() != "help" {
				walk(c)
			}
		}
	}
	walk(app.Root(&ui.UI{Streams: ui.Process(), Program: "kubectl ocm"}))
}

// TestHelpShowsOnlyWhatACommandTakes: the flags of every command are one line.
func TestHelpShowsOnlyWhatACommandTakes(t *testing.T) {
	s := newScene(t)
	for _, line := range []string{"--help", "cluster list --help", "hub --help"} {
		got := s.run(strings.Fields(line)...)
		require.Zero(t, got.code)
		require.NotContains(t, got.out, "--as-uid", line)
		require.Contains(t, got.out, `Use "kubectl ocm options" for the flags that every command has.`, line)
	}
	require.Contains(t, s.run("options").out, "--as-uid")
}
