// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"cmp"
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
	// Wanted says what to accept or deny.
	Wanted accept.Options
	// Show lists the requests.
	Show bool

	f *options.Factory
}

// New makes the command.
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	cmd := &cobra.Command{
		Use: "accept NAME...", Short: "Accept clusters that asked to join", Args: options.Args(0, -1, "the name of a cluster"),
		Long: options.Long(`
		Approve the certificate requests of clusters, after checking who sent them and what they
		ask for, and accept the clusters on the hub of --context. Without a name, list the
		requests.`),
		Example: options.Example(`
		kubectl ocm accept cluster1 cluster2 --context hub
		kubectl ocm accept --show --context hub`),
		ValidArgsFunction: complete.Pending(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Wanted.Clusters = append(o.Wanted.Clusters, args...)
			return f.Do(cmd, o.Validate, o.Run)
		},
	}
	flags := cmd.Flags()
	o.AddFlags(flags, options.Parts{Wait: true})
	flags.StringSliceVarP(&o.Wanted.Clusters, "cluster", "c", nil, "names of clusters")
	flags.BoolVar(&o.Wanted.AllPending, "all-pending", false, "accept all clusters whose request can be trusted")
	flags.StringSliceVar(&o.Wanted.Requesters, "requester", nil, "exact common name or user of the requests to approve; a user named here is trusted")
	flags.BoolVar(&o.Wanted.Deny, "deny", false, "deny the clusters and their requests")
	flags.BoolVar(&o.Wanted.Replace, "replace", false, "let another agent take over the name of one that still reports")
	flags.BoolVar(&o.Show, "show", false, "list the requests")
	flags.Bool("skip-approve-check", false, "")
	flags.Lookup("skip-approve-check").Hidden = true
	flags.Lookup("cluster").Hidden = true
	options.Hidden(flags, "clusters", "cluster")
	options.Hidden(flags, "requesters", "requester")
	options.Apart(flags, "show", "deny", "replace", "requester", "wait", "dry-run")
	options.Apart(flags, "deny", "requester", "wait")
	return cmd
}

// Validate checks the flags.
func (o *Options) Validate() error {
	if len(o.Wanted.Clusters) == 0 && !o.Wanted.AllPending {
		if o.Wanted.Deny {
			return options.Usage("no cluster is named", "kubectl ocm accept NAME --deny")
		}
		o.Show = true
	}
	if o.Wanted.AllPending && (o.Wanted.Deny || len(o.Wanted.Clusters) > 0) {
		return options.Usage("--all-pending cannot be combined with names or --deny", "give either names or --all-pending")
	}
	if o.Wanted.Replace && (o.Wanted.Deny || len(o.Wanted.Clusters) == 0) {
		return options.Usage("--replace needs names, and cannot be combined with --deny", "kubectl ocm accept NAME --replace")
	}
	for _, name := range o.Wanted.Clusters {
		if err := naming.Check(name); err != nil {
			return err
		}
	}
	return o.Check(o.f.UI)
}

// Run accepts or denies the clusters, or lists the requests.
func (o *Options) Run(ctx context.Context, c *fleet.Cluster) error {
	u := o.f.UI
	wanted := o.Wanted
	wanted.Common, wanted.Hub, wanted.Notice = o.Common(u, nil), c, func(l accept.SelfLabels) { u.Note("%s", l) }
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
	if failure == nil && o.Wait && !o.Reads() && !o.Wanted.Deny {
		var names []string
		for _, a := range result.Clusters {
			names = append(names, a.Cluster)
		}
		failure = accept.AwaitAvailable(ctx, wanted, names)
	}
	p.Close()
	return cmp.Or(o.print(u, result, failure), failure)
}

func (o *Options) print(u *ui.UI, result accept.Result, failure error) error {
	if failure == nil || o.Format.Machine() {
		if done, err := o.Printed(u, "AcceptResult", result, result.Items); done || err != nil {
			return err
		}
	}
	if len(result.Clusters) == 0 {
		u.Note("no cluster is waiting to be accepted")
	}
	if failure != nil && len(result.Clusters) > 1 {
		t := ui.Table{Heads: []string{"CLUSTER", "RESULT", "MESSAGE"}}
		for _, a := range result.Clusters {
			if a.Error != nil {
				t.Rows = append(t.Rows, []string{a.Cluster, "failed", a.Failure})
			} else {
				t.Rows = append(t.Rows, []string{a.Cluster, outcome(a), a.Message})
			}
		}
		return u.Report(t, o.Format == ui.Wide)
	}
	for _, a := range result.Clusters {
		if a.Error == nil {
			u.Say("managedcluster/%s %s", a.Cluster, outcome(a))
		}
	}
	return nil
}

// outcome says briefly what happened to a cluster.
func outcome(a accept.Cluster) string {
	if a.Action == fleet.Unchanged {
		return string(fleet.Unchanged)
	}
	if a.Message == "accepted" || strings.HasPrefix(a.Message, "denied") {
		return a.Message
	}
	return fmt.Sprintf("%s (%s)", a.Action, a.Message)
}

// shortReason drops the advice after the semicolon, unless the format is wide.
func shortReason(f ui.Format, reason string) string {
	if f == ui.Wide {
		return reason
	}
	reason, _, _ = strings.Cut(reason, "; ")
	return reason
}

// adviseReplace adds to each request for a name that another agent holds how to give it the name.
func adviseReplace(requests []request.Request) {
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
	adviseReplace(requests)
	u := o.f.UI
	list := options.Listed{Kind: "RequestList", Items: requests, Empty: "no cluster has asked to join",
		Table: ui.Table{Heads: []string{"CLUSTER", "CSR", "REQUESTER", "IDENTITY", "GROUPS", "AGE", "STATE", "REASON", "KEY"}, Wide: 1}}
	noted := map[string]bool{}
	for _, q := range requests {
		groups := "!"
		if q.Groups {
			groups = "ok"
		}
		list.Names = append(list.Names, "certificatesigningrequest.certificates.k8s.io/"+q.Name)
		list.Table.Rows = append(list.Table.Rows, []string{q.Cluster, q.Name, ui.Dash(q.Requester), ui.Dash(q.Identity), groups,
			ui.Age(q.Created, u.Streams.Clock.Now()), q.State, ui.Dash(shortReason(o.Format, q.Reason)), ui.Dash(q.Fingerprint)})
		if len(q.Labels) > 0 && !noted[q.Cluster] && !o.Format.Machine() {
			noted[q.Cluster] = true
			u.Note("%s", accept.SelfLabels{Cluster: q.Cluster, Labels: q.Labels})
		}
	}
	l := &options.Listing{Output: o.Output}
	return l.Show(ctx, u, func(context.Context) (options.Listed, error) { return list, nil })
}
