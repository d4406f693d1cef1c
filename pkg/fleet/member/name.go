// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// heldName returns the cluster name in the certificate of an agent's secret; "" when there is
// none that can be read.
func heldName(data map[string][]byte) string {
	chain, err := trust.Certificates(data[corev1.TLSCertKey])
	if err != nil {
		return ""
	}
	a, ok := identity.ParseUser(chain[0].Subject.CommonName)
	if !ok {
		return ""
	}
	return a.Cluster
}

// nameOf returns the name of an agent on its hub: that of its certificate, else the recorded
// one, else the one in its Klusterlet. The Klusterlet may have been edited by users or other
// tools.
func nameOf(k *operatorv1.Klusterlet, access map[string][]byte) string {
	if name := heldName(access); name != "" {
		return name
	}
	if name := string(access[clusterv1.SecretKeyClusterName]); name != "" && naming.Check(name) == nil {
		return name
	}
	return k.Spec.ClusterName
}

// ReadName reads the name of the agent of a Klusterlet.
func ReadName(ctx context.Context, c *fleet.Cluster, k *operatorv1.Klusterlet) (string, error) {
	namespace := k.AgentNamespace()
	s, err := typed.Get[corev1.Secret](ctx, c.Client, fleet.Secrets, namespace, clusterv1.SecretHubKubeconfig)
	if apierrors.IsNotFound(err) {
		return nameOf(k, nil), nil
	}
	if err != nil {
		return "", fleet.Explain("reading secret "+namespace+"/"+clusterv1.SecretHubKubeconfig, c, err)
	}
	return nameOf(k, s.Data), nil
}
