// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// syncCheck is how often a watch that has not listed yet is checked for the reason.
const syncCheck = 250 * time.Millisecond

// The media types to request in a list and a watch, so that only the metadata of a Secret
// or of a large object is sent.
const (
	metadataList  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	metadataWatch = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// MetadataOnly returns a client whose lists and watches hold metadata alone. It must not
// be used for writing.
func MetadataOnly(cfg *rest.Config) (dynamic.Interface, error) {
	c := rest.CopyConfig(cfg)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return acceptMetadata{next} })
	return dynamic.NewForConfig(c)
}

type acceptMetadata struct{ next http.RoundTripper }

// RoundTrip requests metadata instead of objects.
func (a acceptMetadata) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	accept := metadataList
	if watching, err := strconv.ParseBool(r.URL.Query().Get("watch")); err == nil && watching {
		accept = metadataWatch
	}
	r.Header.Set("Accept", accept)
	return a.next.RoundTrip(r)
}

// watcher is one watch and what it has seen of the works' objects.
type watcher struct {
	seen *watch.Collection[apply.Pack]
	stop context.CancelFunc
}

var definitionsResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// start starts a watch of one scope. The caller holds the lock.
func (t *Tracker) start(s scope) *watcher {
	seen := watch.New(watch.Options[apply.Pack]{
		Client: t.c.Metadata, Resource: s.resource, Namespace: s.namespace, Log: t.c.Log,
		Keep: func(u *unstructured.Unstructured) (apply.Pack, bool) {
			now := apply.See(u)
			return now.Packed(), now.HasOwners() ||
				t.interested(s.resource, reconcile.Key{Namespace: u.GetNamespace(), Name: u.GetName()})
		},
	})
	seen.OnChange(func(k reconcile.Key) { t.changed(s.resource, k) })
	// An object that is missing from the list has no event of its own.
	return t.launch(seen, func() { t.wakeAll(t.worksIn(s)) }, func(err error) { t.blinded(s, err) })
}

// startDefinitions starts the watch of definitions. The caller holds the lock.
func (t *Tracker) startDefinitions() *watcher {
	seen := watch.New(watch.Options[apply.Pack]{
		Client: t.c.Metadata, Resource: definitionsResource, Log: t.c.Log,
		Keep: func(*unstructured.Unstructured) (apply.Pack, bool) {
			return apply.Pack{}, true
		},
	})
	arrived := func() {
		select {
		case <-seen.Synced():
			t.defined()
		default:
		}
	}
	seen.OnChange(func(reconcile.Key) { arrived() })
	return t.launch(seen, t.defined, func(error) {})
}

// defined wakes the works that wait for a kind.
func (t *Tracker) defined() {
	t.mu.Lock()
	works := maps.Clone(t.waiting)
	t.mu.Unlock()
	t.c.Defined()
	t.wakeAll(works)
}

// launch runs the collection, and calls back when it has first listed, and when it may
// not list or watch.
func (t *Tracker) launch(seen *watch.Collection[apply.Pack], listed func(), blinded func(error)) *watcher {
	ctx, cancel := context.WithCancel(t.ctx)
	t.running.Go(func() { _ = seen.Run(ctx) })
	t.running.Go(func() {
		ticker := t.c.Clock.NewTicker(syncCheck)
		defer ticker.Stop()
		for told := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-seen.Synced():
				listed()
				return
			case <-ticker.C():
				if err := seen.Err(); !told && isDenied(err) {
					told = true
					blinded(err)
				}
			}
		}
	})
	return &watcher{seen: seen, stop: cancel}
}

// isDenied reports whether err is one that retrying soon will not fix.
func isDenied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// blinded records that a scope may not be watched. A whole cluster is replaced by its
// namespaces; the objects of a namespace are read once a minute from now on.
func (t *Tracker) blinded(s scope, err error) {
	t.mu.Lock()
	held := t.objects[s.resource]
	clusterScoped := held != nil && held.spaces[""] != nil
	narrowed := s.namespace == "" && !clusterScoped
	if narrowed {
		t.wide[s.resource] = true
		t.adjust()
	}
	t.mu.Unlock()
	if narrowed {
		return
	}
	works := t.worksIn(s)
	for work := range works {
		t.c.OnBlind(work, s.resource, s.namespace, err)
		break
	}
	t.wakeAll(works)
}

// failing reports whether the watch may not be made.
func (w *watcher) failing() bool { return isDenied(w.seen.Err()) }

func (w *watcher) sightOf(k reconcile.Key) (apply.Seen, Sight) {
	if w.failing() {
		return apply.Seen{}, Blind
	}
	select {
	case <-w.seen.Synced():
	default:
		return apply.Seen{}, Unknown
	}
	if seen, there := w.seen.Get(k); there {
		return seen.Seen(), Present
	}
	return apply.Seen{}, Absent
}
