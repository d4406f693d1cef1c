// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Seen is what is remembered of a live object. It is derived from metadata alone, so that
// a metadata-only watch can produce it too. To keep many, use Pack.
type Seen struct {
	// UID and Version identify what was seen.
	UID     types.UID
	Version string
	// Deleting is set while the object waits for its finalizers.
	Deleting bool
	// owners are the works that own the object.
	owners []types.UID
	// fields holds, for each of our field managers, a digest of what it owns and of when
	// that last changed.
	fields []held
}

// held is what one field manager owns.
type held struct {
	manager string
	digest  digest.Sum
}

// See returns what is to be remembered of an object or of its metadata.
func See(u *unstructured.Unstructured) Seen {
	s := Seen{UID: u.GetUID(), Version: u.GetResourceVersion(), Deleting: u.GetDeletionTimestamp() != nil}
	for _, o := range u.GetOwnerReferences() {
		if isWork(o) {
			s.owners = append(s.owners, o.UID)
		}
	}
	for _, entry := range managedEntries(u) {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			s.fields = append(s.fields, held{entry.Manager, digest.Of(entry)})
		}
	}
	return s
}

// of returns the digest of what a manager owns; zero for nothing.
func (s Seen) of(manager string) digest.Sum {
	if i := slices.IndexFunc(s.fields, func(h held) bool { return h.manager == manager }); i >= 0 {
		return s.fields[i].digest
	}
	return digest.Sum{}
}

// Mark returns, as text, the identity of the object and a digest of what a field manager
// owns of it.
func (s Seen) Mark(manager string) string { return fmt.Sprintf("%s %x", s.UID, s.of(manager)) }

// HasOwners reports whether any work owns the object.
func (s Seen) HasOwners() bool { return len(s.owners) > 0 }

// OwnedBy reports whether the work with this UID owns the object.
func (s Seen) OwnedBy(uid types.UID) bool { return slices.Contains(s.owners, uid) }

// Older reports whether s is certainly an earlier state of the cluster than other.
// Versions that cannot be compared are not older.
func (s Seen) Older(other Seen) bool {
	order, err := resourceversion.CompareResourceVersion(s.Version, other.Version)
	return err == nil && order < 0
}

// Drifted reports whether an object that an apply left as after must be checked again now
// that it is seen as now. False costs no request: it is certain that every field that
// o.Manager owns, and the ownership of the work, are as they were left, or that now is
// older than after. Works that share an object share the manager, too, and the time of its last
// write has seconds only: what another work wrote within one does not show.
func Drifted(o Options, work types.UID, after Result, now Seen) bool {
	switch {
	case now.Version == after.Seen.Version || now.Older(after.Seen):
		return false
	case now.UID != after.Seen.UID:
		return true
	case o.Strategy == workv1.UpdateStrategyTypeReadOnly:
		return false
	case now.Deleting != after.Seen.Deleting, now.OwnedBy(work) != o.Owned:
		return true
	case o.Strategy == workv1.UpdateStrategyTypeCreateOnly:
		return false
	case after.Merged != "", len(now.owners) > 1:
		return true
	}
	return now.of(o.Manager) != after.Seen.of(o.Manager)
}

// managedEntries returns the managed fields of our managers. Objects whose managed fields
// cannot be read have none.
func managedEntries(u *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(u.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return !strings.HasPrefix(entry.Manager, workv1.DefaultFieldManager)
	})
}
