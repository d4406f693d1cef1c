// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/accept"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Options are the flags of accept.
type Options struct {
	options.Change
	// Clusters are their names, by argument or by --clusters.
	Clusters []string
	// AllPending means all that asked and can be trusted.
	AllPending bool
	// Requesters select and vouch for requests.
	Requesters []string
	// Deny refuses instead.
	Deny bool
	// Replace lets another agent take a name whose holder reports.
	Replace bool
	// Show lists requests.
	Show bool

	f *options.Factory
}

// New makes the command.
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	cmd := &cobra.Command{
		Use:   "accept NAME...",
		Short: "Let clusters in that asked to be joined",
		Long: options.Long(`
		Approve the certificate requests of clusters, after checking exactly who sent them and
		what they ask for, and accept the clusters on the hub of --context. Without a name the
		requests are listed.`),
		Example: options.Example(`
		kubectl ocm accept cluster1 cluster2 --context hub
		kubectl ocm accept --show --context hub`),
		Args:              options.Args(0, -1, "the name of a cluster"),
		ValidArgsFunction: complete.Pending(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Complete(args)
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.AddFlags(flags, options.Parts{Wait: true})
	flags.StringSliceVarP(&o.Clusters, "cluster", "c", nil, "names of clusters")
	flags.BoolVar(&o.AllPending, "all-pending", false, "all clusters with a request that can be trusted")
	flags.StringSliceVar(&o.Requesters, "requester", nil, "exact common name or user of the requests to approve; a user named here is trusted")
	flags.BoolVar(&o.Deny, "deny", false, "refuse the clusters and their requests")
	flags.BoolVar(&o.Replace, "replace", false, "let another agent take the name of one that still reports")
	flags.BoolVar(&o.Show, "show", false, "list the requests")
	flags.Bool("skip-approve-check", false, "")
	flags.Lookup("skip-approve-check").Hidden = true
	flags.Lookup("cluster").Hidden = true
	options.Hidden(flags, "clusters", "cluster")
	options.Hidden(flags, "requesters", "requester")
	return cmd
}

// Complete adds the names given as arguments.
func (o *Options) Complete(args []string) { o.Clusters = append(o.Clusters, args...) }

// Validate checks the flags.
func (o *Options) Validate() error {
	if len(o.Clusters) == 0 && !o.AllPending {
		if o.Deny {
			return options.Usage("no cluster is named", "kubectl ocm accept NAME --deny")
		}
		o.Show = true
	}
	if o.AllPending && (o.Deny || len(o.Clusters) > 0) {
		return options.Usage("--all-pending goes with neither names nor --deny", "name the clusters, or leave them out")
	}
	if o.Replace && (o.Deny || len(o.Clusters) == 0) {
		return options.Usage("--replace goes with names, and not with --deny", "kubectl ocm accept NAME --replace")
	}
	for _, name := range o.Clusters {
		if err := naming.Check(name); err != nil {
			return err
		}
	}
	return o.Check(o.f.UI)
}

// Run accepts, denies or shows.
func (o *Options) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	wanted := accept.Options{Hub: c, Clusters: o.Clusters, AllPending: o.AllPending, Requesters: o.Requesters, Deny: o.Deny, Replace: o.Replace}
	wanted.Notice = func(l accept.SelfLabels) { u.Note("%s", l) }
	wanted.Common = o.Common(u, nil)
	if o.Show {
		return o.show(ctx, wanted)
	}
	u.Note("hub: %s", c)
	p := u.Progress()
	defer p.Close()
	wanted.Progress = p.Step
	result, failure := accept.Run(ctx, wanted)
	if failure != nil && len(result.Clusters) == 0 {
		return failure
	}
	if failure == nil && o.Wait && !o.Reads() && !o.Deny {
		failure = accept.AwaitAvailable(ctx, wanted, o.names(result))
	}
	p.Close()
	if err := o.print(u, result, failure); err != nil {
		return err
	}
	return failure
}

func (o *Options) names(result accept.Result) []string {
	var out []string
	for _, a := range result.Clusters {
		out = append(out, a.Cluster)
	}
	return out
}

func (o *Options) print(u *ui.UI, result accept.Result, failure error) error {
	if failure == nil || o.Format.Machine() {
		if done, err := o.Preview(u, "AcceptResult", result, result.Items); done || err != nil {
			return err
		}
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "AcceptResult", result, fleet.Names(result.Items))
	}
	if len(result.Clusters) == 0 {
		u.Note("no cluster waits to be accepted")
	}
	if failure != nil && len(result.Clusters) > 1 {
		t := ui.Table{Heads: []string{"CLUSTER", "RESULT", "MESSAGE"}}
		for _, a := range result.Clusters {
			if a.Error != nil {
				t.Rows = append(t.Rows, []string{a.Cluster, "failed", a.Failure})
			} else {
				t.Rows = append(t.Rows, []string{a.Cluster, word(a), a.Message})
			}
		}
		return u.Report(t, o.Format == ui.Wide)
	}
	for _, a := range result.Clusters {
		if a.Error == nil {
			u.Say("managedcluster/%s %s", a.Cluster, word(a))
		}
	}
	return nil
}

// word says in one word what happened to a cluster.
func word(a accept.Cluster) string {
	if a.Action == fleet.Unchanged {
		return string(fleet.Unchanged)
	}
	if a.Message == "accepted" || a.Message == "denied" {
		return a.Message
	}
	return fmt.Sprintf("%s (%s)", a.Action, a.Message)
}

// short leaves out, where the table is not wide, what to do about a reason.
func short(f ui.Format, reason string) string {
	if f == ui.Wide {
		return reason
	}
	reason, _, _ = strings.Cut(reason, "; ")
	return reason
}

// rivals says what gives a name to a request whose name another agent holds.
func rivals(requests []request.Request) {
	for i := range requests {
		if requests[i].Holder != "" {
			requests[i].Reason += "; --replace gives it the name"
		}
	}
}

// show lists the requests.
func (o *Options) show(ctx context.Context, wanted accept.Options) error {
	requests, err := accept.Requests(ctx, wanted)
	if err != nil {
		return err
	}
	rivals(requests)
	u := o.f.UI
	list := options.Listed{Kind: "RequestList", Items: requests, Empty: "no cluster has asked to be joined",
		Table: ui.Table{Heads: []string{"CLUSTER", "CSR", "REQUESTER", "IDENTITY", "GROUPS", "AGE", "STATE", "REASON", "KEY"}, Wide: 1}}
	for _, q := range requests {
		groups := "!"
		if q.Groups {
			groups = "ok"
		}
		list.Names = append(list.Names, "certificatesigningrequest.certificates.k8s.io/"+q.Name)
		list.Table.Rows = append(list.Table.Rows, []string{q.Cluster, q.Name, ui.Dash(q.Requester), ui.Dash(q.Identity), groups,
			ui.Age(q.Created, u.Streams.Clock.Now()), q.State, ui.Dash(short(o.Format, q.Reason)), ui.Dash(q.Fingerprint)})
	}
	told := map[string]bool{}
	for _, q := range requests {
		if len(q.Labels) > 0 && !told[q.Cluster] && !o.Format.Machine() {
			told[q.Cluster] = true
			u.Note("%s", accept.SelfLabels{Cluster: q.Cluster, Labels: q.Labels})
		}
	}
	l := &options.Listing{Output: o.Output}
	return l.Show(ctx, u, func(context.Context) (options.Listed, error) { return list, nil })
}
