// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// Options are the flags of credential.
type Options struct {
	// Account is the ManagedServiceAccount.
	Account string

	// cluster is the managed cluster that the client asks about.
	cluster string
	f       *options.Factory
}

// New returns the command "credential".
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	cmd := &cobra.Command{
		Use: "credential", Aliases: []string{"cp-creds"},
		Short: "Give a Kubernetes client the token of a ManagedServiceAccount", Args: options.Args(0, 0, "credential"),
		Long: options.Long(`
		Give a Kubernetes client the token of a ManagedServiceAccount, as the credential program of a
		program that finds clusters by their ClusterProfiles. The client runs it and says in
		KUBERNETES_EXEC_INFO which cluster it is about; the answer is an ExecCredential of
		client.authentication.k8s.io/v1.

		The token is that in the Secret CLUSTER-NAME, which the hub makes beside the ClusterProfile of
		the cluster. Its namespace is that of -n, else that of the environment variable NAMESPACE, else
		that of the pod, else that of the context.`),
		Example: options.Example(`
		kubectl ocm credential --managed-serviceaccount deployer -n argocd --context hub`),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.Do(cmd, o.Validate, o.Run) },
	}
	cmd.Flags().StringVar(&o.Account, credential.FlagAccount, "", "name of the ManagedServiceAccount")
	_ = cmd.RegisterFlagCompletionFunc(credential.FlagAccount, complete.None)
	return cmd
}

// Validate checks the flags, and what the client asks.
func (o *Options) Validate() (err error) {
	if o.Account == "" {
		return options.Usage("no ManagedServiceAccount is named", "for example --"+credential.FlagAccount+" deployer")
	}
	if err := naming.CheckValue(o.Account, "a ManagedServiceAccount", "deployer"); err != nil {
		return err
	}
	o.cluster, err = credential.ClusterOf(o.f.UI.Streams.Getenv(credential.EnvInfo))
	return err
}

// Run prints the answer.
func (o *Options) Run(ctx context.Context, hub *fleet.Cluster) error {
	if err := credential.CheckHub(hub); err != nil {
		return err
	}
	answer, err := credential.Get(ctx, credential.Options{
		Hub: hub, Namespace: cmp.Or(o.f.GivenNamespace(), o.f.UI.Streams.Getenv("NAMESPACE"), inpod.Namespace(""), o.f.Namespace()),
		Cluster: o.cluster, Account: o.Account,
	})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	o.f.UI.Say("%s", raw)
	return nil
}
