// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// State is what a cluster is joined as, read on the cluster itself.
type State struct {
	// Klusterlet declares its agent.
	Klusterlet *operatorv1.Klusterlet
	// Bootstrap is the content of its bootstrap secret, Hub the parsed form.
	Bootstrap []byte
	Hub       *kubeconfig.Config
	// Registered is true when the agent has an identity of its own; kept is its access to the
	// hub, nil when it cannot be read.
	Registered bool
	kept       *kubeconfig.Config
	// Identity is the secret with that identity.
	Identity *unstructured.Unstructured
	// Name is the agent's name on its hub, whatever its Klusterlet says.
	Name string
}

// Read reads what the cluster is joined as by a Klusterlet; nil when there is no such Klusterlet.
func Read(ctx context.Context, c *fleet.Cluster, klusterlet string) (*State, error) {
	k, err := typed.Get[operatorv1.Klusterlet](ctx, c.Client, fleet.Klusterlets, "", klusterlet)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fleet.Explain("reading the agent of "+c.String(), c, err)
	}
	j := &State{Klusterlet: k, Name: nameOf(k, nil)}
	ns := k.AgentNamespace()
	secret, err := c.Client.Resource(fleet.Secrets).Namespace(ns).Get(ctx, operatorv1.SecretBootstrapHubKubeconfig, metav1.GetOptions{})
	if err == nil {
		j.Bootstrap = []byte(fleet.SecretValue(secret, clusterv1.SecretKeyKubeconfig))
		j.Hub, _ = kubeconfig.Parse(j.Bootstrap)
	}
	secret, err = c.Client.Resource(fleet.Secrets).Namespace(ns).Get(ctx, clusterv1.SecretHubKubeconfig, metav1.GetOptions{})
	if j.Registered = err == nil && fleet.SecretValue(secret, clusterv1.SecretKeyKubeconfig) != ""; j.Registered {
		j.Identity = secret
		j.kept, _ = kubeconfig.ParseSecret(fleet.SecretData(secret))
		j.Name = nameOf(k, fleet.SecretData(secret))
	}
	return j, nil
}

// KnownAt reports whether the hub at e knows the agent by its current certificate: then it is
// the agent's hub, whatever its address and CA are now.
func (j *State) KnownAt(ctx context.Context, e trust.Endpoint) bool {
	if j.kept == nil || len(j.kept.CertData) == 0 {
		return false
	}
	c, err := trust.Connect(e, "")
	if err != nil {
		return false
	}
	c.Config.CertData, c.Config.KeyData = j.kept.CertData, j.kept.KeyData
	if c, err = fleet.Connect(c.Config, ""); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, fleet.ReachTimeout)
	defer cancel()
	_, err = typed.Get[clusterv1.ManagedCluster](ctx, c.Client, fleet.ManagedClusters, "", j.Name)
	return err == nil
}

// Keeps reports whether the cluster is joined under this name to this hub, reached in this
// way.
func (j *State) Keeps(name string, e trust.Endpoint) bool {
	return j != nil && j.Name == name && j.Hub != nil &&
		j.Hub.Server == e.Server && bytes.Equal(bytes.TrimSpace(j.Hub.CAData), bytes.TrimSpace(e.CA)) && j.Hub.ProxyURL == e.ProxyURL
}

// Usable reports whether the hub still accepts the token of the bootstrap secret.
func (j *State) Usable(ctx context.Context) bool {
	if j.Hub.Token == "" {
		return false
	}
	c, err := trust.Connect(trust.Endpoint{Server: j.Hub.Server, CA: j.Hub.CAData, ProxyURL: j.Hub.ProxyURL}, j.Hub.Token)
	return err == nil && token.Usable(ctx, c, true) == nil
}

// heldName returns the cluster name in the certificate of an agent's secret; "" when there is
// none that can be read.
func heldName(data map[string][]byte) string {
	chain, err := trust.Certificates(data[corev1.TLSCertKey])
	if err != nil {
		return ""
	}
	a, _ := identity.ParseUser(chain[0].Subject.CommonName)
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
