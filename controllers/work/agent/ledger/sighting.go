// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Sighting identifies a state of a ManifestWork on the hub. The one last applied is
// recorded on the AppliedManifestWork. A hub never goes back behind it by itself: if it
// does, it was restored from a backup or replaced by another hub, and what it does not
// declare may have been deployed since.
type Sighting struct {
	// UID, Generation and Version are those of the work. The generation is that of its
	// spec: deleting a work raises it by one, which is subtracted.
	UID        types.UID
	Generation int64
	Version    string
}

// SightingOf returns the state of a work.
func SightingOf(work *workv1.ManifestWork) Sighting {
	return slim(work).Sighting()
}

// Sighting returns the state of the work.
func (w Work) Sighting() Sighting {
	s := Sighting{UID: w.UID, Generation: w.Generation, Version: w.Version}
	if w.Deleting {
		s.Generation--
	}
	return s
}

// String returns the recorded form.
func (s Sighting) String() string {
	return fmt.Sprintf("%s %d %s", s.UID, s.Generation, s.Version)
}

// LastSeen returns the state recorded on an AppliedManifestWork; false if there is none
// that can be read.
func LastSeen(applied *workv1.AppliedManifestWork) (Sighting, bool) {
	if applied == nil {
		return Sighting{}, false
	}
	parts := strings.Split(applied.Annotations[workv1.AnnotationLastSeen], " ")
	if len(parts) != 3 {
		return Sighting{}, false
	}
	generation, err := strconv.ParseInt(parts[1], 10, 64)
	return Sighting{UID: types.UID(parts[0]), Generation: generation, Version: parts[2]}, err == nil && parts[0] != ""
}

// Noted reports whether an AppliedManifestWork records that spec of the work.
func Noted(applied *workv1.AppliedManifestWork, now Sighting) bool {
	last, ok := LastSeen(applied)
	return ok && last.UID == now.UID && last.Generation == now.Generation
}

// WentBack says in what way a state is older than the one recorded on an
// AppliedManifestWork; it is empty if it is not older, or if nothing is recorded.
func WentBack(applied *workv1.AppliedManifestWork, now Sighting) string {
	last, ok := LastSeen(applied)
	switch {
	case !ok:
		return ""
	case last.UID != now.UID:
		return "it is not the work that was applied and never deleted here"
	case now.Generation < last.Generation:
		return fmt.Sprintf("its generation is %d, and %d was applied", now.Generation, last.Generation)
	case older(now.Version, last.Version):
		return fmt.Sprintf("its resourceVersion is %s, and %s was applied", now.Version, last.Version)
	}
	return ""
}

// Behind says in what way the hub is behind an earlier state, by the current
// resourceVersion of its works; it is empty if it is not. Records of other addresses of
// the hub do not count.
func (w *Works) Behind(ctx context.Context, records *Applied) (string, error) {
	list, err := w.client.Resource(worksResource).Namespace(w.namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("listing manifestworks: %w", err)
	}
	now := list.GetResourceVersion()
	for _, before := range []string{w.collection.Newest(), records.newest.get()} {
		if older(now, before) {
			return fmt.Sprintf("the resourceVersion of its works is %s, and %s was seen", now, before), nil
		}
	}
	return "", nil
}

// highest is the highest resourceVersion observed; the zero value is ready to use.
type highest struct {
	mu      sync.Mutex
	version string
}

func (h *highest) get() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version
}

// observe includes what a record of this hub holds.
func (h *highest) observe(i Identity, record *workv1.AppliedManifestWork) {
	last, ok := LastSeen(record)
	if !ok || record.Spec.HubHash != i.HubHash {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.version == "" || older(h.version, last.Version) {
		h.version = last.Version
	}
}

// Hold records on an AppliedManifestWork why nothing of it is removed until a person
// removes that note, together with the state that the hub shows now, so that the same
// step back is not reported again.
func (a *Applied) Hold(ctx context.Context, applied *workv1.AppliedManifestWork, why string, now Sighting) (*workv1.AppliedManifestWork, error) {
	return a.Annotate(ctx, applied, map[string]string{
		workv1.AnnotationRemovalHeld: why, workv1.AnnotationLastSeen: now.String(),
	})
}

// Confirm returns the command that lets held removals go on.
func Confirm(applied *workv1.AppliedManifestWork) string {
	return fmt.Sprintf("kubectl annotate appliedmanifestworks %s %s-", applied.Name, workv1.AnnotationRemovalHeld)
}
