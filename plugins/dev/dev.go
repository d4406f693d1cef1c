// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/keeper"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/lab"
)

// defaultName is the name of the playground if none is given; longestName leaves room for
// what is added to it.
const (
	defaultName = "lab"
	longestName = 40
)

// New returns the command "dev".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{
		Use: "dev", Short: "Run a fleet on this machine, to try things out",
		Long: options.Long(`
		Run a hub and managed clusters on this machine, without Docker and without root: real
		control planes of Kubernetes as plain processes, and a node for each that runs the pods of
		this project's images as processes. Pods of other images stay Pending, with the reason in
		their status. It needs Linux.`),
	})
	cmd.AddCommand(newUp(f), newStatus(f), newDown(f), newKeep(f))
	return cmd
}

// newKeep returns the command that dev up runs in the background for each cluster.
func newKeep(f *options.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "keep", Short: "Run a helper process of a playground", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := keeper.Run(cmd.Context(), args, f.UI.Streams.In, f.UI.Streams.Err); code != 0 {
				return ui.Exit(code)
			}
			return nil
		},
	}
}

// nameFlag adds --name.
func nameFlag(cmd *cobra.Command, name *string, value, usage string) {
	cmd.Flags().StringVar(name, "name", value, usage)
	_ = cmd.RegisterFlagCompletionFunc("name", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		root, _ := folder()
		names, _ := lab.Names(root)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// directoryFlag adds a flag for a folder.
func directoryFlag(cmd *cobra.Command, flags *pflag.FlagSet, value *string, name, usage string) {
	flags.StringVar(value, name, "", usage)
	_ = cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
}

// checkName refuses names that would not do as a folder and in a context.
func checkName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > longestName {
		return options.Usage(fmt.Sprintf("%q cannot be the name of a playground", name),
			fmt.Sprintf("use at most %d lower-case letters, digits and -", longestName))
	}
	return nil
}

// supported refuses systems on which no playground runs.
func supported(system string) error {
	if system == "linux" {
		return nil
	}
	names := map[string]string{"darwin": "macOS", "windows": "Windows"}
	name := names[system]
	if name == "" {
		name = system
	}
	return &fleet.Error{Kind: fleet.Refused, Message: "a playground needs Linux", Cause: "this machine runs " + name,
		Fix: fleet.Advice("run this in a virtual machine with Linux (WSL on Windows), or join clusters that you have: kubectl ocm hub init --help")}
}

// folder returns the folder of all playgrounds.
func folder() (string, error) {
	if err := supported(runtime.GOOS); err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", &fleet.Error{Message: "there is no folder for playgrounds", Cause: err.Error(), Fix: fleet.Advice("set HOME or XDG_CACHE_HOME")}
	}
	return filepath.Join(cache, "kubectl-ocm", "dev"), nil
}
