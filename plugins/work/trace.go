// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trace"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// TraceOptions are the flags of work trace.
type TraceOptions struct {
	options.Output
	// Wanted says which object to trace.
	Wanted trace.Options
	// HubContext is the context of the hub; empty searches the kubeconfig for it.
	HubContext string

	f *options.Factory
}

func newTrace(f *options.Factory) *cobra.Command {
	o := &TraceOptions{f: f}
	cmd := &cobra.Command{
		Use: "trace TYPE/NAME", Short: "Show which work, set and placement an object on a managed cluster comes from",
		Args: options.Args(1, 2, "TYPE/NAME of an object"),
		Long: options.Long(`
		Trace an object on the managed cluster of --context to where it was declared: through its
		owners to the AppliedManifestWork, to the hub, and there to the ManifestWork, its replica
		set and its placement. BY lists the field managers that wrote each object, the latest
		first. The hub is the context with the address that the agent uses; if there is none, name
		it with --hub-context. Nothing is changed.`),
		Example: options.Example(`
		kubectl ocm work trace deploy/web -n shop --context cluster1
		kubectl ocm work trace pod web-5c9d7-x2x4k --context cluster1 --hub-context hub
		kubectl ocm work trace widgets.example.com/one --context cluster1 -o json`),
		ValidArgsFunction: complete.None,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.Do(cmd, func() error { return o.Complete(args) }, o.Run)
		},
	}
	flags := cmd.Flags()
	o.AddFlags(flags)
	flags.StringVar(&o.HubContext, "hub-context", "", "context of the hub")
	flags.StringVarP(&o.Wanted.Cluster, "cluster", "c", "", "name of the cluster on the hub, if its agent runs elsewhere")
	_ = cmd.RegisterFlagCompletionFunc("hub-context", complete.Contexts(f))
	return cmd
}

// Complete reads the arguments and checks them.
func (o *TraceOptions) Complete(args []string) error {
	const example = "for example kubectl ocm work trace deploy/web -n shop"
	slash := strings.Contains(args[0], "/")
	switch {
	case len(args) == 2 && slash:
		return options.Usage("an object is named twice: "+strings.Join(args, " "), example)
	case len(args) == 2:
		o.Wanted.Type, o.Wanted.Name = args[0], args[1]
	default:
		o.Wanted.Type, o.Wanted.Name, _ = strings.Cut(args[0], "/")
	}
	if o.Wanted.Type == "" || o.Wanted.Name == "" || strings.Contains(o.Wanted.Name, "/") {
		return options.Usage(strings.Join(args, " ")+" does not name an object by type and name", example)
	}
	return o.Format.Check()
}

// Run traces the object and prints the steps.
func (o *TraceOptions) Run(ctx context.Context, spoke *fleet.Cluster) (err error) {
	wanted := o.Wanted
	wanted.Clock, wanted.Spoke, wanted.Namespace = o.f.UI.Streams.Clock, spoke, o.f.Namespace()
	if o.HubContext != "" {
		if wanted.Hub, err = o.f.Cluster(o.HubContext); err != nil {
			return err
		}
	} else {
		for _, name := range o.f.Contexts() {
			if c, err := o.f.Cluster(name); err == nil {
				wanted.Candidates = append(wanted.Candidates, c)
			}
		}
	}
	trace, failure := trace.Object(ctx, wanted)
	if failure != nil && len(trace.Steps) == 0 {
		return failure
	}
	return cmp.Or(o.print(trace), failure)
}

func (o *TraceOptions) print(trace trace.Result) error {
	u := o.f.UI
	for i, w := range trace.Warnings {
		trace.Warnings[i] = fleet.Note{Text: ui.Told(w, "; ")}
	}
	names := make([]string, 0, len(trace.Steps))
	t := ui.Table{Heads: []string{"KIND", "NAME", "ON", "STATE", "BY", "MESSAGE"}}
	for _, s := range trace.Steps {
		names = append(names, strings.ToLower(s.Kind)+"/"+s.Name)
		branch := ""
		if s.Depth > 0 {
			branch = strings.Repeat("   ", s.Depth-1) + u.Branch(true)
		}
		t.Rows = append(t.Rows, []string{branch + s.Kind, strings.TrimPrefix(s.Namespace+"/"+u.Abridge(s.Name), "/"), s.On,
			ui.Dash(s.State), ui.Dash(strings.Join(s.By, ",")), ui.Dash(s.Message)})
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "WorkTrace", trace, names)
	}
	if err := u.List(t, o.Format == ui.Wide, false); err != nil {
		return err
	}
	for _, w := range trace.Warnings {
		u.Warn("%s", w.Text)
	}
	return nil
}
