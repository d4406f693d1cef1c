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

// Sighting names a state of a ManifestWork on the hub. That of the last one that
// was carried out stands on the AppliedManifestWork. A hub never goes back behind
// it by itself: where it does, it was restored from a back-up, or another one
// stands in its place, and what it does not name may be what was deployed since.
type Sighting struct {
	// UID, Generation and Version are those of the work. The generation is that of
	// its spec: deleting a work raises it by one, which is taken off.
	UID        types.UID
	Generation int64
	Version    string
}

// SightingOf is the state of a work.
func SightingOf(work *workv1.ManifestWork) Sighting {
	return slim(work).Sighting()
}

// Sighting is the state of the work.
func (w Work) Sighting() Sighting {
	s := Sighting{UID: w.UID, Generation: w.Generation, Version: w.Version}
	if w.Deleting {
		s.Generation--
	}
	return s
}

// String is how it is noted down.
func (s Sighting) String() string {
	return fmt.Sprintf("%s %d %s", s.UID, s.Generation, s.Version)
}

// LastSeen is what an AppliedManifestWork notes; false where it notes nothing that
// can be read.
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

// Noted tells whether an AppliedManifestWork notes that spec of the work.
func Noted(applied *workv1.AppliedManifestWork, now Sighting) bool {
	last, ok := LastSeen(applied)
	return ok && last.UID == now.UID && last.Generation == now.Generation
}

// WentBack says how a state is older than the one that an AppliedManifestWork
// notes; it is empty where it is not, or where nothing is noted.
func WentBack(applied *workv1.AppliedManifestWork, now Sighting) string {
	last, ok := LastSeen(applied)
	switch {
	case !ok:
		return ""
	case last.UID != now.UID:
		return "it is another one than that which was applied and never deleted here"
	case now.Generation < last.Generation:
		return fmt.Sprintf("its generation is %d, and %d was applied", now.Generation, last.Generation)
	case older(now.Version, last.Version):
		return fmt.Sprintf("its resourceVersion is %s, and %s was applied", now.Version, last.Version)
	}
	return ""
}

// Behind says how the hub is behind what it has shown before, by the
// resourceVersion of its works as it stands now; it is empty where it is not.
// Records of other addresses of the hub do not count.
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

// highest is the highest resourceVersion that it was told of; the zero value is
// ready.
type highest struct {
	mu      sync.Mutex
	version string
}

func (h *highest) get() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version
}

// note follows what a record of this hub notes.
func (h *highest) note(i Identity, record *workv1.AppliedManifestWork) {
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

// Hold notes on an AppliedManifestWork why nothing of it is removed until a person
// takes that note off, and beside it the state that the hub shows now: from there
// on it is no news that the hub went back.
func (a *Applied) Hold(ctx context.Context, applied *workv1.AppliedManifestWork, why string, now Sighting) (*workv1.AppliedManifestWork, error) {
	return a.Annotate(ctx, applied, map[string]string{
		workv1.AnnotationRemovalHeld: why, workv1.AnnotationLastSeen: now.String(),
	})
}

// Confirm is the command that lets removals go on which are held.
func Confirm(applied *workv1.AppliedManifestWork) string {
	return fmt.Sprintf("kubectl annotate appliedmanifestworks %s %s-", applied.Name, workv1.AnnotationRemovalHeld)
}
