// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Definition is the live state of a CustomResourceDefinition.
type Definition struct {
	// ResourceVersion is empty when the definition is absent.
	ResourceVersion string
	// Version is the version of the program that last wrote the definition.
	Version string
	// Owner is the Klusterlet that the definition is labelled with.
	Owner string
	// Established is true when its objects are served.
	Established bool
}

// Namespace is the live state of a namespace.
type Namespace struct {
	// ResourceVersion is empty when the namespace is absent.
	ResourceVersion string
	// Owner is the Klusterlet that the namespace is labelled with.
	Owner string
	// Leaving is true when the namespace is being deleted.
	Leaving bool
}

// Parts are what all agents share, as one Klusterlet sees it.
type Parts struct {
	// Own is the name of that Klusterlet; Others are those of this cluster that are not being
	// deleted.
	Own    string
	Others []string
	// Wanted are the definitions to apply, Live their live state by name.
	Wanted []*unstructured.Unstructured
	Live   map[string]Definition
	// Properties is true when ClusterProperties are to be reported, Defined when there is a
	// definition of them. It belongs to others: it is created if it is missing, and stays.
	Properties, Defined bool
	// AddOnNamespace is the live state of the namespace of add-ons, which is not made with
	// NoAddOns.
	AddOnNamespace Namespace
	NoAddOns       bool
	// Version is the version of this program.
	Version string
}

// Writes returns the applies of all parts.
func (p Parts) Writes() []reconcile.Write { return append(p.definitions(), p.addOnNamespace()...) }

// IsEstablished reports whether the objects of all definitions are served.
func (p Parts) IsEstablished() bool {
	return !slices.ContainsFunc(p.Wanted, func(u *unstructured.Unstructured) bool { return !p.Live[u.GetName()].Established })
}

// Owner returns the Klusterlet with which to label an object: the one it is labelled with, as
// long as that one stays. Otherwise two agents would relabel it in turns.
func (p Parts) Owner(labelled string) string {
	if slices.Contains(p.Others, labelled) {
		return labelled
	}
	return p.Own
}

// definitions returns the applies of the definitions, none of them over a newer one.
func (p Parts) definitions() []reconcile.Write {
	var out []reconcile.Write
	for _, u := range p.Wanted {
		live := p.Live[u.GetName()]
		if isNewer(live.Version, p.Version) {
			continue
		}
		out = append(out, reconcile.Apply{Object: p.marked(u), LiveVersion: live.ResourceVersion})
	}
	if p.Properties && !p.Defined {
		if u, err := crd.Properties(); err == nil { // no embedded file is broken
			out = append(out, reconcile.Create{Object: u, Lenient: true})
		}
	}
	return out
}

// marked returns a copy of a definition with the label and the version annotation of this
// agent.
func (p Parts) marked(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[operatorv1.LabelCreatedByKlusterlet] = p.Owner(p.Live[u.GetName()].Owner)
	annotations[operatorv1.AnnotationVersion] = p.Version
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	return u
}

// isNewer reports whether version a is newer than version b. An invalid version is older than
// any other.
func isNewer(a, b string) bool {
	va, err := version.ParseSemantic(a)
	if err != nil {
		return false
	}
	vb, err := version.ParseSemantic(b)
	return err != nil || vb.LessThan(va)
}

// addOnNamespace restores the namespace of add-ons once it is completely gone. Deleting it,
// for example with a work that contained it, removes all add-ons.
func (p Parts) addOnNamespace() []reconcile.Write {
	if p.AddOnNamespace.Leaving || p.NoAddOns {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name":        operatorv1.NamespaceAgentAddOn,
			"labels":      map[string]any{operatorv1.LabelCreatedByKlusterlet: p.Owner(p.AddOnNamespace.Owner)},
			"annotations": map[string]any{operatorv1.AnnotationWorkloadAllowed: "management"},
		},
	}}
	return []reconcile.Write{reconcile.Apply{Object: u, LiveVersion: p.AddOnNamespace.ResourceVersion}}
}
