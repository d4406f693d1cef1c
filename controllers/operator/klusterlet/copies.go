// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// pullCopy is what is cached of an image pull secret in another namespace than the agent's.
type pullCopy struct {
	namespace, version string
	uid                types.UID
	// owner is the Klusterlet that made it; empty for one that somebody else made.
	owner string
}

func keepCopy(u *unstructured.Unstructured) (pullCopy, bool) {
	return pullCopy{u.GetNamespace(), u.GetResourceVersion(), u.GetUID(), u.GetLabels()[operatorv1.LabelCreatedByKlusterlet]}, u.GetDeletionTimestamp() == nil
}

// copies follows where the image pull secret is needed, while there is one beside the agent. Only the
// single worker of the loop uses it.
type copies struct {
	namespaces *watch.Collection[string]
	secrets    *watch.Collection[pullCopy]
	// end ends both; nil while there is nothing to copy.
	end func()
	// gone is true once there is nothing to copy, and no copy is left.
	gone bool
}

func (c *Controller) followCopies(ctx context.Context) {
	p := &c.copies
	if p.end != nil {
		return
	}
	p.namespaces = watch.New(watch.Options[string]{
		Client: c.config.Spoke, Resource: namespacesResource, LabelSelector: operatorv1.LabelAddOnNamespace + "=true", Log: c.config.Log,
		Keep: func(u *unstructured.Unstructured) (string, bool) { return u.GetName(), u.GetDeletionTimestamp() == nil },
		Same: func(before, now string) bool { return before == now },
	})
	p.secrets = watch.New(watch.Options[pullCopy]{
		Client: c.config.Spoke, Resource: request.Secrets, FieldSelector: "metadata.name=" + operatorv1.SecretImagePull, Log: c.config.Log, Keep: keepCopy,
	})
	p.namespaces.OnChange(func(reconcile.Key) { c.Wake() })
	p.secrets.OnChange(func(reconcile.Key) { c.Wake() })
	p.namespaces.OnSynced(c.Wake)
	p.secrets.OnSynced(c.Wake)
	p.end, p.gone = shared.Follow(ctx, []shared.Collection{p.namespaces, p.secrets}), false
}

// leave stops watching.
func (p *copies) leave() {
	if p.end != nil {
		p.end()
		p.end = nil
	}
}

// gatherCopies reads what the copies of the image pull secret depend on. Without such a secret, it looks
// once for what is left of them.
func (c *Controller) gatherCopies(ctx context.Context, s *State) {
	source, found := c.secret(operatorv1.SecretImagePull)
	switch {
	case found:
		c.followCopies(ctx)
		s.PullSource = &source
		s.PullNamespaces = c.copies.namespaces.List()
		for _, one := range c.copies.secrets.List() {
			s.PullCopies[one.namespace] = one
		}
	case s.SecretsKnown:
		c.copies.leave()
		c.gatherOldCopies(ctx, s)
	}
}

func (c *Controller) gatherOldCopies(ctx context.Context, s *State) {
	if c.copies.gone {
		return
	}
	list, err := c.config.Spoke.Resource(request.Secrets).List(ctx, metav1.ListOptions{
		LabelSelector: c.ownLabel(), FieldSelector: "metadata.name=" + operatorv1.SecretImagePull,
	})
	if err != nil { // an agent without the right to read them has made none
		c.copies.gone = apierrors.IsForbidden(err)
		return
	}
	for i := range list.Items {
		if one, keep := keepCopy(&list.Items[i]); keep {
			s.PullCopies[one.namespace] = one
		}
	}
	c.copies.gone = len(s.PullCopies) == 0
}

// copyWrites copies the image pull secret to where add-ons run, and removes the copies when it is gone. A
// secret that somebody else made stays. The copies go with the Klusterlet.
func (s State) copyWrites() []reconcile.Write {
	wanted := map[string]bool{}
	if s.PullSource != nil && !s.Reading {
		for _, name := range s.PullNamespaces {
			wanted[name] = true
		}
		wanted[operatorv1.NamespaceAgentAddOn] = s.AddOnNamespace.ResourceVersion != "" && !s.AddOnNamespace.Leaving
	}
	delete(wanted, s.Namespace)
	var out []reconcile.Write
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if live, found := s.PullCopies[name]; wanted[name] && (!found || live.owner != "" && s.Owner(live.owner) == s.Own) {
			out = append(out, reconcile.Apply{Object: s.pullCopy(*s.PullSource, name), LiveVersion: live.version})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.PullCopies)) {
		if live := s.PullCopies[name]; s.PullSource == nil && live.owner == s.Own {
			out = append(out, reconcile.Remove{Target: reconcile.Target{
				Resource: request.Secrets, Namespace: name, Name: operatorv1.SecretImagePull, UID: live.uid, Version: live.version,
			}})
		}
	}
	return out
}

func (s State) pullCopy(source credential.Secret, namespace string) *unstructured.Unstructured {
	u := request.NewSecret(source.Data)
	u.SetNamespace(namespace)
	u.SetName(operatorv1.SecretImagePull)
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: s.Own})
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: operatorv1.GroupVersion.String(), Kind: "Klusterlet", Name: s.Klusterlet.Name, UID: s.Klusterlet.UID,
	}})
	if source.Type != "" {
		u.Object["type"] = source.Type
	}
	return u
}
