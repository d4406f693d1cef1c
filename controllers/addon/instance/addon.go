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

// Resource is that of ManagedClusterAddOns, at their storage version, so that
// nothing depends on conversion.
var Resource = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")

// AddOn is what is kept of a ManagedClusterAddOn. Its lists belong to the index and
// must not be changed.
type AddOn struct {
	// Cluster is its namespace, Name that of the add-on.
	Cluster, Name string
	UID           types.UID
	// Version is its resourceVersion, Generation that of its spec.
	Version    string
	Generation int64
	// Deleting tells that it is on its way out, Token that its agent is to have a
	// token of a ServiceAccount.
	Deleting, Token bool
	// Annotations are those with the prefix that is copied from clusters.
	Annotations map[string]string
	// Given are the keys of annotations that the owner of the index has applied.
	Given []string
	// Owners are its owner references.
	Owners []metav1.OwnerReference
	// Configs are those that it names itself.
	Configs []addonv1alpha1.AddOnConfig
	// Supported, References and Conditions are of its status, whole.
	Supported  []addonv1alpha1.ConfigGroupResource
	References []addonv1alpha1.ConfigReference
	Conditions []metav1.Condition
}

// same tells whether two versions are the same for everybody.
func same(a, b AddOn) bool {
	a.Version = b.Version
	return reflect.DeepEqual(a, b)
}

// Synced tells whether an annotation is among those that are copied from clusters.
func Synced(key string) bool { return strings.HasPrefix(key, addonv1alpha1.AnnotationPrefix) }

// keep reads an add-on. What a cluster's agent or an add-on writes to excess does
// not count: the API server bounds an object.
func (x *Index) keep(u *unstructured.Unstructured) (AddOn, bool) {
	m, err := typed.FromUnstructured[addonv1alpha1.ManagedClusterAddOn](u)
	if err != nil {
		return AddOn{}, false
	}
	w := x.words
	a := AddOn{
		Cluster: w.of(m.Namespace), Name: w.of(m.Name), UID: m.UID, Version: m.ResourceVersion, Generation: m.Generation,
		Deleting: m.DeletionTimestamp != nil, Token: registration.HasToken(m), Given: given(m.ManagedFields, x.manager),
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

// given are the keys of the annotations that a manager has applied, sorted.
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

// Key of the object.
func (a AddOn) Key() reconcile.Key { return reconcile.Key{Namespace: a.Cluster, Name: a.Name} }
