// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Kind is the kind of add-ons, at their storage version, so that nothing depends on
// conversion.
var Kind = addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")

// AddOn is a ManagedClusterAddOn as the hub caches it: there may be tens of thousands, and
// only these fields are read. It is never written.
type AddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status holds the conditions; Trim keeps only Available.
	Status AddOnStatus `json:"status,omitzero"`
}

// AddOnStatus is the part of the status that is read.
type AddOnStatus struct {
	// Conditions of the add-on.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AddOnList is a list of AddOns.
type AddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the add-ons.
	Items []AddOn `json:"items"`
}

// AddToScheme registers AddOn as the type the kind is read as.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(Kind, &AddOn{})
	s.AddKnownTypeWithName(Kind.GroupVersion().WithKind(Kind.Kind+"List"), &AddOnList{})
	metav1.AddToGroupVersion(s, Kind.GroupVersion())
	return nil
}

// DeepCopy returns an add-on that shares nothing with a.
func (a *AddOn) DeepCopy() *AddOn {
	out := &AddOn{TypeMeta: a.TypeMeta, ObjectMeta: *a.ObjectMeta.DeepCopy()}
	for _, c := range a.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *c.DeepCopy())
	}
	return out
}

// DeepCopyObject implements runtime.Object.
func (a *AddOn) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *AddOnList) DeepCopyObject() runtime.Object {
	out := &AddOnList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}

// Trim reduces an add-on to what the loops read; the reason and message of Available are kept
// only while it is Unknown.
func Trim(in any) (any, error) {
	a, ok := in.(*AddOn)
	if !ok {
		return in, nil // a tombstone passes unchanged
	}
	kept := &AddOn{TypeMeta: a.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: a.Namespace, Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion, DeletionTimestamp: a.DeletionTimestamp,
	}}
	if priority, ok := a.Annotations[clusterv1.AnnotationCleanupPriority]; ok {
		kept.Annotations = map[string]string{clusterv1.AnnotationCleanupPriority: priority}
	}
	if c := a.available(); c != nil {
		one := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: c.Status}
		if c.Status == metav1.ConditionUnknown {
			one.Reason, one.Message = c.Reason, c.Message
		}
		kept.Status.Conditions = []metav1.Condition{one}
	}
	return kept, nil
}

// available returns the condition Available; nil when the add-on has none.
func (a *AddOn) available() *metav1.Condition {
	return apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionAvailable)
}
