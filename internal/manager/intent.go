// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Stamp notes on o a hash of o in an annotation, and returns it. A hub that
// starts again tells by it, and by SoleManager, from metadata alone that an
// object is what would be applied, and sends nothing.
func Stamp(o reconcile.Object) string {
	raw, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	hash := hex.EncodeToString(sum[:12])
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.AnnotationIntent] = hash
	o.SetAnnotations(annotations)
	return hash
}

// SoleManager tells whether owner alone wrote an object, by server-side apply;
// writers of its status do not count.
func SoleManager(fields []metav1.ManagedFieldsEntry, owner string) bool {
	return !slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "" && (f.Manager != owner || f.Operation != metav1.ManagedFieldsOperationApply)
	})
}

// Sight remembers the version of objects when this process saw them first. An
// object of that version is as its stamp says; one that changed since has to be
// applied again, because a field that somebody removed leaves no trace in the
// metadata. It keeps digests, about 50 bytes an object. The zero value is ready.
// Its methods are safe for concurrent use.
type Sight struct {
	mu    sync.Mutex
	first map[digest.Sum]digest.Sum
}

// Unchanged tells whether the object has the version that was seen first; the
// first sight is now, if there was none.
func (s *Sight) Unchanged(object, version string) bool {
	key, value := digest.OfParts(object), digest.OfParts(version)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		s.first = map[digest.Sum]digest.Sum{}
	}
	first, seen := s.first[key]
	if !seen {
		s.first[key] = value
		return true
	}
	return first == value
}

// Forget drops an object that is gone.
func (s *Sight) Forget(object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.first, digest.OfParts(object))
}
