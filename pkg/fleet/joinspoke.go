// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// joined is what a cluster is joined as, read on the cluster itself.
type joined struct {
	klusterlet *operatorv1.Klusterlet
	// bootstrap is the content of its bootstrap secret; hub what that says.
	bootstrap []byte
	hub       *kubeconfig.Config
	// registered tells that the agent has an identity of its own; kept is its way
	// to the hub, nil when it cannot be read.
	registered bool
	kept       *kubeconfig.Config
	// identity is the secret that holds it.
	identity *unstructured.Unstructured
	// name is the one that the agent goes by on its hub, whatever its Klusterlet says.
	name string
}

// readJoined reads what the cluster is joined as; nil when it is not.
func readJoined(ctx context.Context, c *Cluster) (*joined, error) {
	k, err := typed.Get[operatorv1.Klusterlet](ctx, c.Client, klusterlets, "", operatorv1.DefaultKlusterletName)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("reading the agent of "+c.String(), c, err)
	}
	j := &joined{klusterlet: k, name: joinedAs(k, nil)}
	ns := j.namespace()
	secret, err := c.Client.Resource(secrets).Namespace(ns).Get(ctx, operatorv1.SecretBootstrapHubKubeconfig, metav1.GetOptions{})
	if err == nil {
		j.bootstrap = []byte(secretValue(secret, clusterv1.SecretKeyKubeconfig))
		j.hub, _ = kubeconfig.Parse(j.bootstrap)
	}
	secret, err = c.Client.Resource(secrets).Namespace(ns).Get(ctx, clusterv1.SecretHubKubeconfig, metav1.GetOptions{})
	if j.registered = err == nil && secretValue(secret, clusterv1.SecretKeyKubeconfig) != ""; j.registered {
		j.identity = secret
		j.kept, _ = kubeconfig.ParseSecret(secretData(secret))
		j.name = joinedAs(k, secretData(secret))
	}
	return j, nil
}

// namespace is where the agent is.
func (j *joined) namespace() string {
	if j != nil && j.klusterlet.Spec.Namespace != "" {
		return j.klusterlet.Spec.Namespace
	}
	return operatorv1.NamespaceAgent
}

// keeps tells whether the cluster is joined under this name to this hub, reached
// in this way.
func (j *joined) keeps(name string, e Endpoint) bool {
	return j != nil && j.name == name && j.hub != nil &&
		j.hub.Server == e.Server && bytes.Equal(bytes.TrimSpace(j.hub.CAData), bytes.TrimSpace(e.CA)) && j.hub.ProxyURL == e.ProxyURL
}

// usable tells whether the hub still takes the token of the bootstrap secret.
func (j *joined) usable(ctx context.Context) bool {
	if j.hub.Token == "" {
		return false
	}
	c, err := connectWith(Endpoint{Server: j.hub.Server, CA: j.hub.CAData, ProxyURL: j.hub.ProxyURL}, j.hub.Token)
	return err == nil && checkToken(ctx, c, true) == nil
}

// checkSpoke refuses a cluster that is too old, or joined elsewhere.
func (j *join) checkSpoke(ctx context.Context) error {
	j.step("cluster")
	v, err := serverVersion(ctx, j.Spoke)
	if err != nil {
		return err
	}
	if err := atLeast(j.Spoke, v, oldestManaged, "managed cluster"); err != nil {
		return err
	}
	if j.before, err = readJoined(ctx, j.Spoke); err != nil {
		return err
	}
	if err := j.checkLeaving(ctx); err != nil {
		return err
	}
	if err := j.checkElsewhere(ctx); err != nil {
		return err
	}
	j.published = publishedAddress(ctx, j.Spoke)
	j.done(fmt.Sprintf("%s, Kubernetes %s", j.Spoke, v))
	return nil
}

// publishedAddress is how others reach a cluster, as it says itself in cluster-info; nil
// where it does not, or names an address that only itself can reach.
func publishedAddress(ctx context.Context, c *Cluster) []operatorv1.ServerURL {
	info, err := publishedInfo(ctx, c)
	if err != nil || checkURL("the published address", info.server) != nil || isLoopback(info.server) {
		return nil
	}
	address := operatorv1.ServerURL{URL: info.server}
	if _, err := certificates(info.ca); err == nil {
		address.CABundle = info.ca
	}
	return []operatorv1.ServerURL{address}
}

// checkLeaving refuses to install into namespaces that go away with an earlier
// agent: what is applied now would go with them.
func (j *join) checkLeaving(ctx context.Context) error {
	for _, name := range []string{operatorv1.NamespaceAgent, operatorv1.NamespaceAgentAddOn} {
		ns, err := j.Spoke.Client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return explain("reading namespace "+name, j.Spoke, err)
		}
		if err == nil && ns.GetDeletionTimestamp() != nil {
			return refused("namespace "+name+" is being deleted on "+j.Spoke.String(), "an earlier agent is not gone yet", "wait for: kubectl wait --for=delete namespace/"+name+j.Spoke.flag())
		}
	}
	return nil
}

func (j *join) checkElsewhere(ctx context.Context) error {
	b := j.before
	if b != nil && b.klusterlet.DeletionTimestamp != nil {
		return refused(fmt.Sprintf("the agent of %s is being removed", j.Spoke), "klusterlet/"+b.klusterlet.Name+" is being deleted",
			"finish that first: kubectl ocm unjoin "+b.name+j.Spoke.flag())
	}
	if b == nil || j.Rejoin {
		return nil
	}
	fix := fmt.Sprintf("kubectl ocm unjoin %s%s      or add --rejoin to take it away from there", b.name, j.Spoke.flag())
	if name := b.name; name != "" && name != j.Name {
		return refused(fmt.Sprintf("%s is joined already, as %q", j.Spoke, name), "one agent has one name", fix)
	}
	if b.hub != nil && !sameHub(b.hub, j.agent) && !b.knownAt(ctx, j.agent) {
		return refused(fmt.Sprintf("%s is joined already, to another hub", j.Spoke), fmt.Sprintf("its agent uses %s, not %s", b.hub.Server, j.agent.Server), fix)
	}
	return nil
}

// sameHub tells whether both mean the same hub: one address, or one CA.
func sameHub(have *kubeconfig.Config, want Endpoint) bool {
	if have.Server == want.Server {
		return true
	}
	a, errA := certificates(have.CAData)
	b, errB := certificates(want.CA)
	return errA == nil && errB == nil && CAHash(a[0]) == CAHash(b[0])
}

// lost tells that the agent of this cluster is installed under the name and has no
// identity: it was deleted, or never came.
func (j *join) lost() bool {
	return j.before != nil && !j.before.registered && j.before.name == j.Name
}

// checkName refuses a name that another living cluster holds.
func (j *join) checkName(ctx context.Context) error {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, j.hub.Client, managedClusters, "", j.Name)
	if apierrors.IsNotFound(err) {
		j.unknown = true
		return nil
	}
	if err != nil {
		return explain("looking for the name on the hub", j.hub, err)
	}
	if mc.DeletionTimestamp != nil {
		return refused(fmt.Sprintf("the name %q is not free yet", j.Name), "managedcluster/"+j.Name+" is being deleted on the hub", "wait until it is gone: kubectl get managedcluster "+j.Name+j.hub.flag())
	}
	if j.before != nil && j.before.registered && j.before.name == j.Name {
		return nil
	}
	if j.lost() {
		// The agent asks anew under the name that it had; whether it is the same agent
		// is looked at when it is let in.
		j.remark("name", fmt.Sprintf("the agent of %q has lost its certificate, and asks for a new one", j.Name))
		return nil
	}
	if alive(mc) {
		return refused(fmt.Sprintf("another cluster holds the name %q", j.Name), "its agent reports to the hub",
			fmt.Sprintf("choose another name, or unjoin the other one: kubectl ocm unjoin %s --context <its context> --hub-context <hub>", j.Name))
	}
	if everJoined(mc) {
		j.remark("name", fmt.Sprintf("%q was joined before and no longer reports; this cluster takes its place", j.Name))
	}
	return nil
}
