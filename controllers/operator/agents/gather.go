// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// agentLock is the lease of an agent that is one process, and leaseCheck how often to look
// whether it is still held.
const (
	agentLock  = "klusterlet-agent-lock"
	leaseCheck = time.Minute
)

// isElected reports whether it is this process that serves the Klusterlets of others.
func (c *Controller) isElected(v *view) bool {
	if c.config.Own == "" {
		return true
	}
	names := v.ownRun()
	return v.operator.Len() == 0 && (len(names) == 0 || names[0] == c.config.Own)
}

// gather reads the caches, and what the hub grants to the agent's secrets; false while the managed
// cluster of a hosted agent has not answered yet.
func (c *Controller) gather(ctx context.Context, v *view, is settings.Seen) (s State, known bool, err error) {
	k := is.Klusterlet
	s = State{
		Parts: v.shared.Parts(k.Name, c.others(k.Name)), Neighbors: c.neighbors(k.Name), Now: c.config.Clock.Now(), Klusterlet: k, Unreadable: is.Problem,
		Compact: c.config.Own != "", Image: c.image(v), Namespaces: map[string]Labelled{}, Deployments: map[reconcile.Key]Deployment{},
		Holder: c.holder(v, k), Written: map[reconcile.Key]bool{}, Secrets: map[string]map[string]Secret{}, PullCopies: map[string]Secret{},
		ProfileCopies: map[string]Profile{}, Policies: map[string]Labelled{},
	}
	for _, d := range v.deployments.List() {
		if d.Owner == k.Name && d.Runs == "" {
			s.Deployments[d.Key] = d
			c.mu.Lock()
			s.Written[d.Key] = c.written[d.Key] == d.Generation
			c.mu.Unlock()
		}
	}
	c.gatherNamespaces(v, &s)
	c.gatherProfile(v, &s)
	c.gatherPolicies(v, &s)
	if s.isHosted() {
		if known, err = c.gatherManaged(ctx, &s); !known || err != nil {
			return s, known, err
		}
	}
	s.NoAddOns, s.SyncLabels = c.config.NoAddOns, c.config.SyncLabels
	if k.DeletionTimestamp != nil {
		return s, true, nil
	}
	if len(s.Deployments) == 0 {
		holder, err := c.leaseHolder(ctx, k)
		if err != nil || holder != "" {
			s.Lease = holder
			return s, true, err
		}
	}
	objects, err := rights(k, s.agentNamespace(), !s.isSingleton())
	if err != nil {
		return s, true, err
	}
	if s.isHosted() {
		objects = ofManaged(objects, false)
	}
	s.Rights, s.Former = v.live(s.placeable(objects)), v.former(k.Name)
	c.gatherAccess(ctx, &s)
	return s, true, nil
}

// others returns the Klusterlets of this cluster that stay, besides the one with that name.
func (c *Controller) others(name string) []string {
	out := Others(c.config.Klusterlets, name)
	if c.config.Own != "" {
		out = append(out, c.config.Own)
	}
	return out
}

// neighbors returns all other Klusterlets of this cluster that stay, also those of hosted agents.
func (c *Controller) neighbors(name string) []string {
	out := c.others(name)
	for _, is := range c.config.Klusterlets.List() {
		if k := is.Klusterlet; k.DeletionTimestamp == nil && k.Name != name && k.IsHosted() {
			out = append(out, k.Name)
		}
	}
	return out
}

// holder returns the Klusterlet to which the agent's namespace belongs already, so that the agent of
// another must not be put there; empty if it is free.
func (c *Controller) holder(v *view, k *operatorv1.Klusterlet) string {
	if k.AgentNamespace() == c.config.Namespace && c.config.Own != "" {
		return c.config.Own
	}
	n, _ := v.namespaces.Get(reconcile.Key{Name: k.AgentNamespace()})
	for _, is := range c.config.Klusterlets.List() {
		switch other := is.Klusterlet; {
		case other.Name == k.Name:
		case n.Klusterlet == other.Name, n.Owner == other.Name && n.Klusterlet != k.Name:
			return other.Name
		case n.Klusterlet != k.Name && other.AgentNamespace() == k.AgentNamespace() && isElder(other, k):
			return other.Name
		}
	}
	return ""
}

func isElder(a, b *operatorv1.Klusterlet) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// image returns the image that this process runs.
func (c *Controller) image(v *view) string {
	if own, ok := v.operator.Get(reconcile.Key{Namespace: operatorv1.NamespaceOperator, Name: operatorDeployment}); ok {
		return own.Image
	}
	own, _ := v.deployments.Get(reconcile.Key{Namespace: c.config.Namespace, Name: operatorv1.AgentDeployment(c.config.Own)})
	return cmp.Or(own.Image, c.config.Image)
}

func (c *Controller) gatherNamespaces(v *view, s *State) {
	for _, n := range v.namespaces.List() {
		if n.AddOns || n.Klusterlet == s.Klusterlet.Name || n.Name == operatorv1.NamespaceAgentAddOn || n.Name == s.agentNamespace() {
			s.Namespaces[n.Name] = n
		}
	}
	for name, list := range v.secrets {
		for _, secret := range list.List() {
			switch _, known := s.Namespaces[secret.Namespace]; {
			case name == operatorv1.SecretImagePull && secret.Namespace == c.config.Namespace:
				s.PullSource = &secret
			case name == operatorv1.SecretImagePull:
				s.PullCopies[secret.Namespace] = secret
			case known || secret.Namespace == s.agentNamespace():
				if s.Secrets[secret.Namespace] == nil {
					s.Secrets[secret.Namespace] = map[string]Secret{}
				}
				s.Secrets[secret.Namespace][name] = secret
			}
		}
	}
}

// hubNamespaceOf returns the managed cluster to which a namespace belongs if this cluster is its hub.
// Whoever removed it with an agent would remove the works of that cluster.
func (c *Controller) hubNamespaceOf(ctx context.Context, namespace string) (string, error) {
	live, err := c.config.Client.Resource(namespacesResource).Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	return live.GetLabels()[clusterv1.LabelClusterName], nil
}

// leaseHolder returns the process that serves the Klusterlet in itself, without a Deployment that
// says so; empty without one.
func (c *Controller) leaseHolder(ctx context.Context, k *operatorv1.Klusterlet) (string, error) {
	lease, err := c.config.Client.Resource(leasesResource).Namespace(k.AgentNamespace()).Get(ctx, agentLock, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading lease %s/%s: %w", k.AgentNamespace(), agentLock, err)
	}
	if lease.GetLabels()[operatorv1.LabelCreatedByKlusterlet] != k.Name {
		return "", nil
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	renewed, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
	at, err := time.Parse(time.RFC3339Nano, renewed)
	if err == nil && c.config.Clock.Now().Before(at.Add(time.Duration(seconds)*time.Second)) {
		return holder, nil
	}
	// Nobody renews it.
	return "", nil
}

// gatherAccess asks the hub what it grants to the secrets.
func (c *Controller) gatherAccess(ctx context.Context, s *State) {
	ask := c.askersOf(s.Klusterlet.Name)
	if secret := s.secret(operatorv1.SecretHubKubeconfig); secret != nil {
		s.HubSecret = secret.Data
		cluster := string(secret.Data[clusterv1.SecretKeyClusterName])
		if reason, _ := access.MissingReason(secret.Data); reason == "" {
			config, err := kubeconfig.ParseSecret(secret.Data)
			if err != nil {
				s.Hub = access.Answer{Problem: err.Error()}
			} else {
				s.Hub = ask.hub.Ask(ctx, string(secret.UID)+secret.Version, config, access.Hub(cluster))
			}
		}
	}
	if reason, _ := s.hubReason(); reason == "" || len(settings.Read(s.Klusterlet).Settings.Hubs) > 0 {
		return
	}
	if secret := s.secret(operatorv1.SecretBootstrapHubKubeconfig); secret != nil {
		s.BootstrapSecret = secret.Data
		read := credential.ReadBootstrap(operatorv1.SecretBootstrapHubKubeconfig, secret.Data)
		s.Bootstrap = access.Answer{Problem: read.Problem}
		if read.Config != nil {
			s.Bootstrap = ask.bootstrap.Ask(ctx, read.Digest, read.Config, access.Bootstrap())
		}
	}
}

func (c *Controller) askersOf(klusterlet string) *askers {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.askers[klusterlet]
	if a == nil {
		one := access.Asker{Clock: c.config.Clock, UserAgent: c.config.UserAgent}
		a = &askers{bootstrap: one, hub: one}
		a.bootstrap.Brief = true
		c.askers[klusterlet] = a
	}
	return a
}

// rights returns the ServiceAccounts and rights of an agent whose registration is a process apart
// from works, or not.
func rights(k *operatorv1.Klusterlet, namespace string, apart bool) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Rights(manifests.Agent{
		Klusterlet: k.Name, Namespace: namespace, Apart: apart, Proxy: true, Hosted: k.IsHosted(),
	})
	if err != nil {
		return nil, err
	}
	out, tunnel := objects[:0], settings.Read(k).Settings.Proxy
	for _, u := range objects {
		if _, binds := u.Object["subjects"]; binds && u.GetName() == manifests.ProxyBinding(k.Name) && !tunnel {
			u.Object["subjects"] = []any{} // explicitly empty, so that earlier subjects are removed
		}
		if u.GetName() == aloneRights(k.Name) {
			// What a process needs to serve a Klusterlet; these only ask who reads their metrics.
			if u.GetKind() == "ClusterRole" {
				continue
			}
			u.SetName(manifests.MetricsBinding(k.Name))
			_ = unstructured.SetNestedField(u.Object, "system:auth-delegator", "roleRef", "name") // roleRef is a map
			if apart {
				addSubject(u, manifests.RegistrationAccount(k.Name))
			}
		}
		dropPolicies(u)
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[operatorv1.LabelCreatedByKlusterlet] = k.Name
		u.SetLabels(labels)
		out = append(out, u)
	}
	return out, nil
}

// placeable returns the rights without those in the namespace of add-ons while it is not there, and is not made,
// or goes: its event comes when it can take them.
func (s State) placeable(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	if at := s.Parts.AddOnNamespace; !at.Leaving && (at.ResourceVersion != "" || !s.NoAddOns) {
		return objects
	}
	return slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetNamespace() == operatorv1.NamespaceAgentAddOn })
}

// dropPolicies removes the right to write NetworkPolicies, which are those of the operator here: an
// agent could remove its own.
func dropPolicies(u *unstructured.Unstructured) {
	rules, _ := u.Object["rules"].([]any)
	if u.GetKind() != "Role" {
		return
	}
	u.Object["rules"] = slices.DeleteFunc(rules, func(rule any) bool {
		r, _ := rule.(map[string]any)
		return reflect.DeepEqual(r["apiGroups"], []any{shared.PoliciesResource.Group})
	})
}

// aloneRights is the name of the role, and of its binding, that only an agent has which serves its
// Klusterlet itself. Earlier releases gave the binding for metrics this name, too.
func aloneRights(klusterlet string) string { return "kubectl-ocm:" + klusterlet }

// addSubject adds a ServiceAccount to the one that a binding names.
func addSubject(u *unstructured.Unstructured, account string) {
	subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
	if len(subjects) != 1 {
		return
	}
	first, _ := subjects[0].(map[string]any)
	_ = unstructured.SetNestedSlice(u.Object, append(subjects, any(map[string]any{
		"kind": "ServiceAccount", "name": account, "namespace": first["namespace"],
	})), "subjects")
}
