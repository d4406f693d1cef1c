// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// policy is what is cached of a NetworkPolicy of the agent.
type policy struct {
	version string
	uid     types.UID
}

func keepPolicy(u *unstructured.Unstructured) (policy, bool) {
	return policy{u.GetResourceVersion(), u.GetUID()}, u.GetDeletionTimestamp() == nil
}

// policies follows the NetworkPolicies of the agent while the gate is on. Only the single worker of the
// loop uses it.
type policies struct {
	live    *watch.Collection[policy]
	servers *watch.Collection[[]int64]
	// end ends both; nil while the gate is off.
	end func()
	// gone is true once the gate is off and nothing is left.
	gone bool
}

// followPolicies starts to watch.
func (c *Controller) followPolicies(ctx context.Context) {
	p := &c.policies
	if p.end != nil {
		return
	}
	p.live = watch.New(watch.Options[policy]{
		Client: c.config.Spoke, Resource: shared.PoliciesResource, Namespace: c.config.Namespace, LabelSelector: c.ownLabel(), Log: c.config.Log,
		Keep: keepPolicy,
	})
	p.servers = shared.NewAPIServers(c.config.Spoke, c.config.Log)
	p.live.OnChange(func(reconcile.Key) { c.Wake() })
	p.servers.OnChange(func(reconcile.Key) { c.Wake() })
	p.live.OnSynced(c.Wake)
	p.servers.OnSynced(c.Wake)
	p.end, p.gone = shared.Follow(ctx, []shared.Collection{p.live, p.servers}), false
}

func (c *Controller) ownLabel() string {
	return operatorv1.LabelCreatedByKlusterlet + "=" + c.config.Name
}

// leave stops watching.
func (p *policies) leave() {
	if p.end != nil {
		p.end()
		p.end = nil
	}
}

// gatherPolicies reads what the NetworkPolicies depend on. While the gate is off, it looks once for what
// is left of them.
func (c *Controller) gatherPolicies(ctx context.Context, s *State) {
	asked := settings.Read(s.Klusterlet)
	if !asked.Policies {
		c.policies.leave()
		c.gatherLeft(ctx, s)
		return
	}
	c.followPolicies(ctx)
	for _, name := range shared.PolicyNames() {
		if live, ok := c.policies.live.Get(reconcile.Key{Namespace: c.config.Namespace, Name: name}); ok {
			s.Policies[name] = live
		}
	}
	var given []int64
	for _, ports := range c.policies.servers.List() {
		given = append(given, ports...)
	}
	var secrets []map[string][]byte
	for _, name := range slices.Concat(asked.Settings.Hubs, []string{operatorv1.SecretBootstrapHubKubeconfig, operatorv1.SecretHubKubeconfig}) {
		secret, _ := c.secret(name)
		secrets = append(secrets, secret.Data)
	}
	s.APIPorts = shared.APIPorts(given, secrets...)
}

func (c *Controller) gatherLeft(ctx context.Context, s *State) {
	if c.policies.gone {
		return
	}
	list, err := c.config.Spoke.Resource(shared.PoliciesResource).Namespace(c.config.Namespace).List(ctx, metav1.ListOptions{LabelSelector: c.ownLabel()})
	if err != nil { // an agent without the right to read them has made none
		c.policies.gone = apierrors.IsForbidden(err)
		return
	}
	for i := range list.Items {
		if live, keep := keepPolicy(&list.Items[i]); keep && slices.Contains(shared.PolicyNames(), list.Items[i].GetName()) {
			s.Policies[list.Items[i].GetName()] = live
		}
	}
	c.policies.gone = len(s.Policies) == 0
}

// policyWrites returns the applies of the agent's NetworkPolicies if the gate is on, or else the removals of
// those that are left. Nothing is applied before the cluster is read: the agent could cut itself off.
func (s State) policyWrites(wanted bool) []reconcile.Write {
	all := shared.Policies{
		Klusterlet: s.Klusterlet.Name, Namespace: s.Namespace, Apps: []string{operatorv1.AgentDeployment(operatorv1.DefaultKlusterletName)}, Ports: s.APIPorts,
	}
	var out []reconcile.Write
	for _, name := range shared.PolicyNames() {
		live, found := s.Policies[name]
		switch {
		case wanted && !s.Reading && s.SecretsKnown:
			out = append(out, reconcile.Apply{Object: all.Object(name), LiveVersion: live.version})
		case !wanted && found:
			out = append(out, reconcile.Remove{Target: reconcile.Target{
				Resource: shared.PoliciesResource, Namespace: s.Namespace, Name: name, UID: live.uid, Version: live.version,
			}})
		}
	}
	return out
}
