// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// KubeconfigOptions are the flags of proxy kubeconfig.
type KubeconfigOptions struct {
	options.Output
	proxy.Way
	// Merge adds the context to the user's kubeconfig instead of printing one.
	Merge bool

	f *options.Factory
}

func newKubeconfig(f *options.Factory) *cobra.Command {
	o := &KubeconfigOptions{f: f}
	cmd := &cobra.Command{
		Use: "kubeconfig", Short: "Print a kubeconfig that reaches a managed cluster through the hub", Args: options.Args(0, 0, "kubeconfig"),
		Long: options.Long(`
		Print a kubeconfig with which kubectl, Helm, k9s and any other client reach a managed cluster
		through the hub of --context. It has the credentials that you have for the hub: keep it as
		safe as your own.

		--merge adds a context HUB/CLUSTER to your kubeconfig instead. It refers to the user that you
		already have there, so no credential is stored twice.

		With --as-sa the cluster sees one of its ManagedServiceAccounts instead of you, and the name of
		the context ends with /ACCOUNT. The kubeconfig has no credential of the account.`),
		Example: options.Example(`
		kubectl ocm proxy kubeconfig -c cluster1 --context hub > cluster1.kubeconfig
		kubectl ocm proxy kubeconfig -c cluster1 --merge --context hub
		kubectl ocm proxy kubeconfig -c cluster1 --as-sa robot --context hub > robot.kubeconfig`),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.Do(cmd, o.Validate, o.Run) },
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&o.Cluster, "cluster", "c", "", "name of the managed cluster")
	cmd.Flags().BoolVar(&o.Merge, "merge", false, "add the context to your kubeconfig instead of printing one")
	_ = cmd.RegisterFlagCompletionFunc("cluster", complete.Clusters(f))
	addAccount(cmd, &o.Account, complete.Accounts(f, func() string { return o.Cluster }))
	return cmd
}

// Validate checks the flags.
func (o *KubeconfigOptions) Validate() error {
	if o.Cluster == "" {
		return options.Usage("no cluster is named", "for example -c cluster1")
	}
	if err := cmp.Or(checkName(o.Cluster), checkAccount(o.Account)); err != nil {
		return err
	}
	if o.Merge && o.f.ActsAsOther() {
		return options.Usage("--merge refers to the user of your kubeconfig", "leave --as, --client-certificate and the like out, or leave out --merge")
	}
	if !o.Merge && o.Format == ui.Name {
		return options.Usage("a kubeconfig has no name", "leave out -o, or use -o json")
	}
	return o.Format.Check()
}

// Run prints the kubeconfig, or adds to the user's own.
func (o *KubeconfigOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	if err := proxy.Served(ctx, hub); err != nil {
		return err
	}
	if _, err := (cluster.Targets{Clusters: []string{o.Cluster}}).Resolve(ctx, hub); err != nil {
		return err
	}
	if o.Merge {
		return o.merge(hub)
	}
	one, err := o.f.One()
	if err != nil {
		return err
	}
	config, err := proxy.Kubeconfig(one, o.Way, o.f.GivenNamespace())
	if err != nil {
		return err
	}
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	if !o.Format.Machine() {
		o.f.UI.Say("%s", strings.TrimRight(string(raw), "\n"))
		return nil
	}
	out := map[string]string{"cluster": o.Cluster, "server": config.Clusters[o.Name()].Server, "kubeconfig": string(raw)}
	if o.Account != "" {
		out["account"] = o.Account
	}
	return o.f.UI.Result(o.Format, "ProxyKubeconfig", out, nil)
}

// merge adds a context to the user's kubeconfig.
func (o *KubeconfigOptions) merge(hub *fleet.Cluster) error {
	u := o.f.UI
	access := o.f.Kubeconfig()
	config, err := access.GetStartingConfig()
	if err != nil {
		return fleet.Fail("the kubeconfig cannot be read", err, nil)
	}
	if hub.Context == "" {
		return options.Usage("there is no kubeconfig to add to", "leave out --merge")
	}
	entry, err := proxy.Merge(config, hub.Context, o.Way, o.f.GivenNamespace())
	if err != nil {
		return fleet.Refuse("the kubeconfig stays as it is", err.Error(), fleet.Advice("rename that entry, or leave out --merge"))
	}
	if entry.Changed {
		if err := clientcmd.ModifyConfig(access, *config, true); err != nil {
			return fleet.Fail("writing the kubeconfig", err, nil)
		}
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "ProxyContext", entry, []string{"context/" + entry.Context})
	}
	action := map[bool]fleet.Action{true: fleet.Configured, false: fleet.Unchanged}[entry.Changed]
	u.Say("context/%s %s", entry.Context, action)
	u.Next("kubectl get nodes --context " + ui.ShellWord(entry.Context))
	return nil
}
