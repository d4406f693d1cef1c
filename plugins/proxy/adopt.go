// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"

	"github.com/spf13/cobra"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// AdoptOptions are the flags of proxy adopt.
type AdoptOptions struct {
	options.Output
	// Set is the cluster set that the list is for, and AgentNamespace the namespace of its agents.
	Set, AgentNamespace string

	f *options.Factory
}

func newAdopt(f *options.Factory) *cobra.Command {
	o := &AdoptOptions{f: f}
	cmd := &cobra.Command{
		Use: "adopt", Short: "Print what the add-on cluster-proxy exposes, as a list for managed clusters", Args: options.Args(0, 0, "adopt"),
		Long: options.Long(`
		Print the Services that OCM's add-on cluster-proxy exposes, as the ConfigMap with which managed
		clusters expose them through the hub itself. Nothing is written: what a cluster exposes is decided
		there. "work apply" sends the list to the clusters that you choose, and replaces the one that they have.

		The add-on has a list for all clusters. In its older releases, each ManagedProxyServiceResolver
		exposes one Service on the clusters of a set: --clusterset adds those of that set. What a cluster does
		not take is named.`),
		Example: options.Example(`
		kubectl ocm proxy adopt --context hub
		kubectl ocm proxy adopt --context hub | kubectl ocm work apply cluster-proxy-exposed-services -f - -l env=prod --context hub
		kubectl ocm proxy adopt --clusterset prod --context hub`),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.Do(cmd, o.Validate, o.Run) },
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.Set, "clusterset", "", "also what is exposed on the clusters of this set alone")
	_ = cmd.RegisterFlagCompletionFunc("clusterset", complete.Sets(f))
	cmd.Flags().StringVar(&o.AgentNamespace, "agent-namespace", operatorv1.NamespaceAgent, "namespace of the agent on the managed clusters")
	return cmd
}

// Validate checks the flags.
func (o *AdoptOptions) Validate() error {
	if err := naming.CheckValue(o.AgentNamespace, "a namespace", operatorv1.NamespaceAgent); err != nil {
		return err
	}
	return o.Format.Check()
}

// Run prints the list.
func (o *AdoptOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	if err := fleet.NeedHub(ctx, hub); err != nil {
		return err
	}
	adopted, err := proxy.Adopt(ctx, proxy.AdoptOptions{Hub: hub, Set: o.Set, Namespace: o.AgentNamespace})
	if err != nil {
		return err
	}
	for _, n := range adopted.Left {
		u.Warn("not in this list: %s", ui.Told(n, "; "))
	}
	if o.Format.Machine() {
		if o.Format == ui.Name {
			return u.Result(o.Format, "", nil, []string{"configmap/" + connectv1alpha1.ConfigMapExposedServices})
		}
		return u.Document(o.Format, adopted.List)
	}
	return u.Documents([]map[string]any{adopted.List})
}
