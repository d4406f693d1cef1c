// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// New returns the command "proxy".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{Use: "proxy", Short: "Reach managed clusters and their Services through the hub"})
	cmd.AddCommand(newKubectl(f), newKubeconfig(f), newHealth(f), newPortForward(f), newService(f), newAdopt(f))
	return cmd
}

// HealthOptions are the flags of proxy health.
type HealthOptions struct {
	options.Output
	options.Targets
	// Timeout is how long each cluster may take to answer.
	Timeout time.Duration

	f *options.Factory
}

func newHealth(f *options.Factory) *cobra.Command {
	o := &HealthOptions{f: f}
	cmd := &cobra.Command{
		Use: "health", Short: "Ask the API servers of managed clusters through the hub", Args: options.Args(0, 0, "health"),
		Long: options.Long(`
		Ask the API servers of managed clusters through the hub of --context whether they are ready:
		all accepted clusters, or those that are named. The exit code is 3 if one of them is not.
		LATENCY is the median of five answers.`),
		Example: options.Example(`
		kubectl ocm proxy health --context hub
		kubectl ocm proxy health -l env=prod -o json --context hub`),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.Do(cmd, o.Validate, o.Run) },
	}
	o.Output.AddFlags(cmd.Flags())
	o.Targets.AddFlags(cmd, complete.Targets(f))
	options.DurationVar(cmd.Flags(), &o.Timeout, "timeout", 10*time.Second, "how long each cluster may take to answer, for example 5s")
	return cmd
}

// Validate checks the flags.
func (o *HealthOptions) Validate() error {
	if o.Timeout <= 0 {
		return options.Usage("--timeout must be longer than 0", "for example --timeout 10s")
	}
	return cmp.Or(o.Targets.Check(false), o.Format.Check())
}

// Run prints how the clusters are reached.
func (o *HealthOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	found, err := proxy.CheckHealth(ctx, proxy.HealthOptions{
		Common: fleet.Common{Clock: u.Streams.Clock}, Hub: hub, Targets: o.Targets.Targets, Patience: o.Timeout,
	})
	if err != nil {
		return err
	}
	if err := o.print(found); err != nil {
		return err
	}
	for i := range found {
		if !found[i].Well() {
			return ui.Exit(ui.ExitFindings)
		}
	}
	return nil
}

func (o *HealthOptions) print(found []proxy.Health) error {
	u := o.f.UI
	t := ui.Table{Heads: []string{"CLUSTER", "ADDON", "TUNNEL", "APISERVER", "LATENCY(p50)", "MESSAGE"}}
	var names []string
	for _, h := range found {
		latency := ""
		if h.Well() {
			latency = fmt.Sprintf("%.1fms", h.Latency)
		}
		names = append(names, h.Cluster)
		t.Rows = append(t.Rows, []string{h.Cluster, ui.Dash(h.AddOn), ui.Dash(h.Tunnel), h.APIServer, ui.Dash(latency), ui.Dash(h.Message)})
	}
	switch {
	case o.Format.Machine():
		return u.Result(o.Format, "ProxyHealthList", found, names)
	case len(found) == 0:
		u.Note("no accepted clusters")
		return nil
	}
	return u.Report(t, o.Format == ui.Wide)
}
