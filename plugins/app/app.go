// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/accept"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/addon"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/check"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/completion"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/credential"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/dev"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/hub"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/join"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/report"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/unjoin"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/version"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/work"
)

// completer is the name of the program that kubectl runs for completions.
const completer = "kubectl_complete-ocm"

// Streams are the standard streams, environment and clock of the program.
type Streams = ui.Streams

// Process returns the streams of the running process.
func Process() Streams { return ui.Process() }

// Run runs the program and returns its exit code. args are those of the process,
// starting with the program's name. Run stops early when ctx is done.
func Run(ctx context.Context, s Streams, args []string) int {
	name, words := "", []string(nil)
	if len(args) > 0 {
		name, words = strings.TrimSuffix(filepath.Base(args[0]), ".exe"), args[1:]
	}
	if name == completer {
		words = append([]string{cobra.ShellCompRequestCmd}, words...)
	}
	words, note := translate(words)
	u := &ui.UI{Streams: s, Program: program(name), Color: "auto", Interrupted: ctx.Done()}
	f := options.NewFactory(u)
	root := tree(f, note, words)
	root.SetArgs(words)
	err := f.Guard(ctx, root.ExecuteContext(ctx))
	naming.Suggest(ctx, err)
	return u.Fail(err)
}

// Root builds the command tree.
func Root(u *ui.UI) *cobra.Command { return tree(options.NewFactory(u), "", nil) }

// Documented builds the command tree as the reference documents it: called through
// kubectl, and identical on every machine.
func Documented() *cobra.Command {
	return Root(&ui.UI{Streams: Streams{Getenv: func(string) string { return "" }}, Program: "kubectl ocm"})
}

// tree builds the command tree for a command line; note, unless empty, is printed before a command runs.
func tree(f *options.Factory, note string, typed []string) *cobra.Command {
	u := f.UI
	root := options.Group(&cobra.Command{
		Use:   "kubectl-ocm",
		Short: "Manage many Kubernetes clusters with Open Cluster Management",
		Long: options.Long(`
		Manage many Kubernetes clusters with Open Cluster Management: make one cluster the
		hub, join others to it, and send them work.

		Flags go after the plugin's name:
		"kubectl ocm hub init --context x", not "kubectl --context x ocm hub init".`),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: u.Program},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			quietLibraries(cmd.Flags())
			if strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
				return nil // what is being typed is not whole yet
			}
			if err := cmp.Or(options.CheckInput(cmd, args, typed), checkWords(cmd)); err != nil {
				return err
			}
			if note != "" {
				u.Note("%s", u.Own(note))
			}
			return f.Check()
		},
	})
	root.SetIn(u.Streams.In)
	root.SetOut(u.Streams.Out)
	root.SetErr(u.Streams.Err)
	root.SetFlagErrorFunc(flagError)
	f.AddFlags(root.PersistentFlags())
	logFlags(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: "fleet", Title: "Fleet:"}, &cobra.Group{ID: "use", Title: "Use:"}, &cobra.Group{ID: "other", Title: "Other:"})
	add(root, "fleet", hub.New(f), join.New(f), accept.New(f), unjoin.New(f))
	add(root, "use", cluster.New(f), clusterset.New(f), placement.New(f), work.New(f), addon.New(f), proxy.New(f), credential.New(f))
	add(root, "other", check.New(f), report.New(f), dev.New(f), version.New(f), completion.New(f))
	root.AddCommand(moved()...)
	add(root, "other", newOptions(u, root.PersistentFlags()))
	root.SetUsageTemplate(usage(root.UsageTemplate(), u))
	completeValues(root, f)
	root.SetHelpCommandGroupID("other")
	return root
}

func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// flagError turns an unknown flag into a usage error that suggests the nearest known one.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	e := &fleet.Error{Kind: fleet.Usage, Message: err.Error(), Fix: fleet.Advice(cmd.CommandPath() + " --help"), Err: err}
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		f := wrong.GetFlag()
		e.Message = fmt.Sprintf("wrong value %q for --%s", excerpt.Of(wrong.GetValue(), maxShown), f.Name)
		if like, known := examples[f.Value.Type()]; known {
			e.Fix = fleet.Advice(strings.ReplaceAll(like, "NAME", f.Name))
		} else {
			e.Cause = wrong.Unwrap().Error()
		}
		return e
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := naming.Nearest(strings.TrimSpace(name), names); near != "" {
			e.Cause = "did you mean --" + near + "?"
		}
	}
	return e
}

// maxShown is how much of a wrong value is shown, in bytes.
const maxShown = 60

// examples are values of flags by the type of the flag, whose own errors are those of a parser.
var examples = map[string]string{
	"bool":           "--NAME=true, --NAME=false, or just --NAME",
	"duration":       "for example --NAME 90s or --NAME 5m",
	"int":            "a whole number, for example --NAME 2",
	"int32":          "a whole number, for example --NAME 2",
	"stringToString": "for example --NAME env=prod",
}

// logFlags adds -v, the log level of the client libraries, and hides the other klog flags.
func logFlags(flags *pflag.FlagSet) {
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	set.VisitAll(func(f *flag.Flag) {
		p := pflag.PFlagFromGoFlag(f)
		p.Hidden = f.Name != "v"
		p.Name = strings.ReplaceAll(p.Name, "_", "-")
		if flags.Lookup(p.Name) == nil {
			flags.AddFlag(p)
		}
	})
}

// quietLibraries discards the logs of the client libraries unless -v is given: the
// program reports every failure itself. It runs once per process, because watches of
// an earlier command in the same process may still be logging while they stop.
func quietLibraries(flags *pflag.FlagSet) {
	if !flags.Changed("v") {
		quiet.Do(func() { klog.SetLogger(logr.Discard()) })
	}
}

var quiet sync.Once

// program returns the command that the user typed, from the file name of the binary. kubectl runs a plugin under its
// own file name, which begins with kubectl-.
func program(name string) string {
	if name == "" || name == completer || strings.HasPrefix(name, "kubectl-") {
		return "kubectl ocm"
	}
	return name
}
