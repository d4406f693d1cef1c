// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Stamp sets an annotation of o to a hash of o, and returns the hash. By the hash and
// SoleManager a restarted hub recognizes from metadata alone an object that is what it
// would apply, and sends nothing.
func Stamp(o reconcile.Object) string {
	raw, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	sum := digest.OfBytes(raw)
	hash := hex.EncodeToString(sum[:12])
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.AnnotationIntent] = hash
	o.SetAnnotations(annotations)
	return hash
}

// SoleManager reports whether owner alone wrote an object, by server-side apply; writers
// of its status do not count.
func SoleManager(fields []metav1.ManagedFieldsEntry, owner string) bool {
	return !slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "" && (f.Manager != owner || f.Operation != metav1.ManagedFieldsOperationApply)
	})
}

// Sight remembers the version that objects had when this process first saw them. An
// object of that version is as its stamp says; one that changed since has to be applied
// again, because a removed field leaves no trace in the metadata. It keeps digests, about
// 50 bytes an object. The zero value is ready to use. It is safe for concurrent use.
type Sight struct {
	mu    sync.Mutex
	first map[digest.Sum]digest.Sum
}

// Unchanged reports whether the object has the version that was seen first; if it was not
// seen before, this is its first sight.
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
	}
	return !seen || first == value
}

// Forget drops an object that is gone.
func (s *Sight) Forget(object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.first, digest.OfParts(object))
}
