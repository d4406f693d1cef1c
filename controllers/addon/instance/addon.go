// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Resource is the resource of ManagedClusterAddOns in their storage version, so that reads do
// not depend on conversion.
var Resource = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")

// AddOn is what is cached of a ManagedClusterAddOn. Its lists belong to the index and must
// not be changed.
type AddOn struct {
	// Cluster is its namespace, Name the name of the add-on.
	Cluster, Name string
	UID           types.UID
	// Version is its resourceVersion, Generation its metadata.generation.
	Version    string
	Generation int64
	// Deleting is true when it is being deleted, Token when its agent should get a token of a
	// ServiceAccount.
	Deleting, Token bool
	// Annotations are the annotations with the prefix that is copied from clusters.
	Annotations map[string]string
	// Given are the keys of annotations that the index's field manager has applied.
	Given []string
	// Owners are its owner references.
	Owners []metav1.OwnerReference
	// Configs are the configurations that it names itself.
	Configs []addonv1alpha1.AddOnConfig
	// Supported, References and Conditions are the full lists of its status.
	Supported  []addonv1alpha1.ConfigGroupResource
	References []addonv1alpha1.ConfigReference
	Conditions []metav1.Condition
}

// same reports whether two versions are equal for all readers.
func same(a, b AddOn) bool {
	a.Version = b.Version
	return reflect.DeepEqual(a, b)
}

// Synced reports whether an annotation is copied from clusters.
func Synced(key string) bool { return strings.HasPrefix(key, addonv1alpha1.AnnotationPrefix) }

// keep reads an add-on. Its lists need no limit, since the API server limits the size of an
// object.
func (x *Index) keep(u *unstructured.Unstructured) (AddOn, bool) {
	m, err := typed.FromUnstructured[addonv1alpha1.ManagedClusterAddOn](u)
	if err != nil {
		return AddOn{}, false
	}
	w := x.words
	a := AddOn{
		Cluster: w.of(m.Namespace), Name: w.of(m.Name), UID: m.UID, Version: m.ResourceVersion, Generation: m.Generation,
		Deleting: m.DeletionTimestamp != nil, Token: registration.HasToken(m), Given: given(m.ManagedFields, x.owner),
	}
	for key, value := range m.Annotations {
		if Synced(key) {
			if a.Annotations == nil {
				a.Annotations = map[string]string{}
			}
			a.Annotations[w.of(key)] = w.of(value)
		}
	}
	for _, o := range m.OwnerReferences {
		o.APIVersion, o.Kind, o.Name, o.UID = w.of(o.APIVersion), w.of(o.Kind), w.of(o.Name), types.UID(w.of(string(o.UID)))
		a.Owners = append(a.Owners, o)
	}
	for _, c := range m.Spec.Configs {
		a.Configs = append(a.Configs, addonv1alpha1.AddOnConfig{ConfigGroupResource: w.kind(c.ConfigGroupResource), ConfigReferent: w.referent(c.ConfigReferent)})
	}
	for _, s := range m.Status.SupportedConfigs {
		a.Supported = append(a.Supported, w.kind(s))
	}
	for _, r := range m.Status.ConfigReferences {
		a.References = append(a.References, addonv1alpha1.ConfigReference{
			ConfigGroupResource: w.kind(r.ConfigGroupResource), ConfigReferent: w.referent(r.ConfigReferent), LastObservedGeneration: r.LastObservedGeneration,
			DesiredConfig: w.hashed(r.DesiredConfig), LastAppliedConfig: w.hashed(r.LastAppliedConfig),
		})
	}
	for _, c := range m.Status.Conditions {
		c.Type, c.Status = w.of(c.Type), metav1.ConditionStatus(w.of(string(c.Status)))
		c.Reason, c.Message = w.of(c.Reason), w.of(c.Message)
		a.Conditions = append(a.Conditions, c)
	}
	return a, true
}

// given returns the keys of the annotations that a field manager has applied, sorted.
func given(fields []metav1.ManagedFieldsEntry, manager string) []string {
	var out []string
	for _, f := range fields {
		if f.Manager != manager || f.Operation != metav1.ManagedFieldsOperationApply || f.Subresource != "" || f.FieldsV1 == nil {
			continue
		}
		var set struct {
			Metadata struct {
				Annotations map[string]struct{} `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(f.FieldsV1.GetRawBytes(), &set) != nil {
			continue
		}
		for key := range set.Metadata.Annotations {
			if name, ok := strings.CutPrefix(key, "f:"); ok {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Key returns the key of the object.
func (a AddOn) Key() reconcile.Key { return reconcile.Key{Namespace: a.Cluster, Name: a.Name} }
