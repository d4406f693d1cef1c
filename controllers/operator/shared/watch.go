// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var (
	definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespacesResource  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// Watch holds the live state of the parts of one cluster.
type Watch struct {
	wanted      []*unstructured.Unstructured
	version     string
	definitions []*watch.Collection[Definition]
	properties  *watch.Collection[Definition]
	addOns      *watch.Collection[Namespace]
}

// NewWatch watches these definitions and the namespace of add-ons, each by name; version is that
// of this program. wake is called after a change.
func NewWatch(client dynamic.Interface, wanted []*unstructured.Unstructured, version string, wake func(), log logr.Logger) *Watch {
	w := &Watch{wanted: wanted, version: version}
	byName := func(name string) *watch.Collection[Definition] {
		d := watch.New(watch.Options[Definition]{
			Client: client, Resource: definitionsResource, FieldSelector: "metadata.name=" + name, Log: log, Keep: keepDefinition,
		})
		d.OnChange(func(reconcile.Key) { wake() })
		return d
	}
	for _, u := range wanted {
		w.definitions = append(w.definitions, byName(u.GetName()))
	}
	w.properties = byName(crd.ClusterProperties)
	w.addOns = watch.New(watch.Options[Namespace]{
		Client: client, Resource: namespacesResource, FieldSelector: "metadata.name=" + operatorv1.NamespaceAgentAddOn, Log: log,
		Keep: func(u *unstructured.Unstructured) (Namespace, bool) {
			owner := u.GetLabels()[operatorv1.LabelCreatedByKlusterlet]
			return Namespace{ResourceVersion: u.GetResourceVersion(), Owner: owner, Leaving: u.GetDeletionTimestamp() != nil}, true
		},
	})
	w.addOns.OnChange(func(reconcile.Key) { wake() })
	return w
}

// Collections returns what the Watch reads; the caller runs them.
func (w *Watch) Collections() []Collection {
	out := []Collection{w.addOns, w.properties}
	for _, d := range w.definitions {
		out = append(out, d)
	}
	return out
}

// Parts returns the parts as the Klusterlet own sees them, beside others that stay.
func (w *Watch) Parts(own string, others []string) Parts {
	p := Parts{Own: own, Others: others, Wanted: w.wanted, Live: map[string]Definition{}, Version: w.version}
	for i, u := range w.wanted {
		if d, ok := w.definitions[i].Get(reconcile.Key{Name: u.GetName()}); ok {
			p.Live[u.GetName()] = d
		}
	}
	_, p.Defined = w.properties.Get(reconcile.Key{Name: crd.ClusterProperties})
	p.AddOnNamespace, _ = w.addOns.Get(reconcile.Key{Name: operatorv1.NamespaceAgentAddOn})
	return p
}

func keepDefinition(u *unstructured.Unstructured) (Definition, bool) {
	d := Definition{
		ResourceVersion: u.GetResourceVersion(), Version: u.GetAnnotations()[operatorv1.AnnotationVersion],
		Owner: u.GetLabels()[operatorv1.LabelCreatedByKlusterlet],
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			d.Established = u.GetDeletionTimestamp() == nil
		}
	}
	return d, true
}
