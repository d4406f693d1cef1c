// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// newOptions returns the command "options", which shows the flags that every command has.
func newOptions(u *ui.UI, flags *pflag.FlagSet) *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "Show the flags that every command has", Args: options.Args(0, 0, "options"),
		Example: options.Example(`
		kubectl ocm options`),
		RunE: func(*cobra.Command, []string) error {
			u.Say("The following flags can be given to every command:\n\n%s", strings.TrimRight(flags.FlagUsages(), "\n"))
			return nil
		},
	}
}

// usage returns the template of the help of a command without the flags that every command has;
// one line says how to see those.
func usage(template string, u *ui.UI) string {
	const inherited = "{{if .HasAvailableInheritedFlags}}"
	before, after, _ := strings.Cut(template, inherited)
	_, after, _ = strings.Cut(after, "{{end}}")
	before = strings.Replace(before, "{{if .HasAvailableLocalFlags}}", "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
	return before + "{{if .Runnable}}\n\nUse \"" + u.Own("kubectl ocm ") + "options\" for the flags that every command has.{{end}}" + after
}

// words are the values that flags of these names can have.
var words = map[string][]string{
	"output":          {"json", "yaml", "name", "wide", "jsonpath=", "go-template="},
	"dry-run":         {"none", "client", "server"},
	"color":           {"auto", "always", "never"},
	"layout":          {"compact", "split"},
	"fail-on":         {"warning", "error"},
	"pre":             {"hub", "join"},
	"print":           {"join-command", "token", "bundle", "kubeconfig"},
	"for":             {"applied", "available", "complete", "deleted"},
	"rollout":         {"all", "progressive", "per-group"},
	"delete-option":   {"foreground", "orphan"},
	"update-strategy": work.UpdateStrategies(),
	"registration":    {"csr", "token"},
	"agent-rights":    {"default", "narrow"},
	"addon-rights":    {"default", "narrow"},
}

// checkWords refuses a value that a flag cannot have. The flags that know other spellings of theirs
// judge themselves.
func checkWords(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values, fixed := words[f.Name]
		own := slices.Contains([]string{"output", "dry-run", "color"}, f.Name)
		if value := f.Value.String(); err == nil && fixed && !own && !slices.Contains(values, value) {
			last := len(values) - 1
			err = options.Usage(fmt.Sprintf("wrong value %q for --%s", excerpt.Of(value, maxShown), f.Name),
				"use "+strings.Join(values[:last], ", ")+" or "+values[last])
		}
	})
	return err
}

// completeValues completes the values of flags whose command does not do that itself.
func completeValues(root *cobra.Command, f *options.Factory) {
	names := map[string]complete.Func{
		"context": complete.Contexts(f), "hub-context": complete.Contexts(f), "spoke-context": complete.Contexts(f),
		"namespace": complete.Namespaces(f), "cluster": complete.Clusters(f), "clusterset": complete.Sets(f), "placement": complete.AllPlacements(f),
	}
	for name, values := range words {
		names[name] = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	completeBy(root, names)
}

// completeBy completes the values of the flags in names, of cmd and all commands below it. It looks
// only at the flags that each command declares, because looking for inherited ones takes most of a
// start.
func completeBy(cmd *cobra.Command, names map[string]complete.Func) {
	for name, values := range names {
		if cmd.Flags().Lookup(name) == nil && cmd.PersistentFlags().Lookup(name) == nil {
			continue
		}
		if _, known := cmd.GetFlagCompletionFunc(name); !known {
			_ = cmd.RegisterFlagCompletionFunc(name, values)
		}
	}
	for _, c := range cmd.Commands() {
		completeBy(c, names)
	}
}
