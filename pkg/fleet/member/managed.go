// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Managed returns the cluster that the agent of a Klusterlet on c manages: c itself, unless the
// agent is hosted there.
func Managed(ctx context.Context, c *fleet.Cluster, k *operatorv1.Klusterlet) (*fleet.Cluster, error) {
	if !k.IsHosted() {
		return c, nil
	}
	at := "secret " + k.AgentNamespace() + "/" + operatorv1.SecretExternalManagedKubeconfig
	s, err := typed.Get[corev1.Secret](ctx, c.Client, fleet.Secrets, k.AgentNamespace(), operatorv1.SecretExternalManagedKubeconfig)
	if err != nil {
		return nil, fleet.Explain("reading "+at, c, err)
	}
	config, err := kubeconfig.ParseSecret(s.Data)
	if err != nil {
		return nil, fleet.Fail(at+" on "+c.String()+" does not lead to the managed cluster", err, fleet.Advice("put a kubeconfig of the managed cluster into it"))
	}
	return Connect(config)
}

// Connect returns a connection to the cluster that a kubeconfig leads to.
func Connect(config *kubeconfig.Config) (*fleet.Cluster, error) {
	managed, err := trust.Connect(trust.Endpoint{Server: config.Server, CA: config.CAData, ProxyURL: config.ProxyURL}, config.Token)
	if err != nil {
		return nil, err
	}
	managed.Config.CertData, managed.Config.KeyData, managed.Config.ServerName = config.CertData, config.KeyData, config.TLSServerName
	return fleet.Connect(managed.Config, "")
}
