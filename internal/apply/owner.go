// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// ownerKind is the kind of the objects that own what works apply.
const ownerKind = "AppliedManifestWork"

// OwnerOf returns the owner reference that an applied object carries: neither controller
// nor blockOwnerDeletion is set.
func OwnerOf(work *workv1.AppliedManifestWork) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: workv1.GroupVersion.String(), Kind: ownerKind,
		Name: work.Name, UID: work.UID,
	}
}

// isWork reports whether a reference names an AppliedManifestWork.
func isWork(o metav1.OwnerReference) bool {
	return o.Kind == ownerKind && o.APIVersion == workv1.GroupVersion.String()
}

// hasOwner reports whether the work with this UID owns the object.
func hasOwner(u *unstructured.Unstructured, uid types.UID) bool {
	return slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == uid && isWork(o) })
}

// sharedBy reports whether a work other than the one with this UID owns the object.
func sharedBy(u *unstructured.Unstructured, uid types.UID) bool {
	return slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID != uid && isWork(o) })
}

// wantedOwners returns the owner references to apply: those of the manifest, those of
// other works on the live object, and ours if the work owns the object. The references of
// other works must be listed because our own manager may own them, and what it leaves out
// is removed.
func wantedOwners(declared []metav1.OwnerReference, live *unstructured.Unstructured, ours metav1.OwnerReference, owned bool) []metav1.OwnerReference {
	all := declared
	if live != nil {
		others := slices.DeleteFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return !isWork(o) })
		all = slices.Concat(declared, others)
	}
	var out []metav1.OwnerReference
	for _, o := range all {
		if o.UID != ours.UID && !slices.ContainsFunc(out, func(have metav1.OwnerReference) bool { return have.UID == o.UID }) {
			out = append(out, o)
		}
	}
	if owned {
		out = append(out, ours)
	}
	return out
}

// withOwner returns the live object's owner references with ours added or removed, and
// whether that changes them.
func withOwner(live *unstructured.Unstructured, ours metav1.OwnerReference, owned bool) ([]metav1.OwnerReference, bool) {
	have := live.GetOwnerReferences()
	if hasOwner(live, ours.UID) == owned {
		return have, false
	}
	out := slices.DeleteFunc(slices.Clone(have), func(o metav1.OwnerReference) bool { return o.UID == ours.UID })
	if owned {
		out = append(out, ours)
	}
	return out, true
}
