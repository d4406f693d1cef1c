// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// refreshEvery is the least time between two refreshes caused by unknown kinds.
const refreshEvery = time.Second

// Mapping is the resource of a kind.
type Mapping struct {
	// Resource is group, version and plural as in a request path.
	Resource schema.GroupVersionResource
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool
}

// UnknownKindError means that the server serves no resource of that kind.
type UnknownKindError struct {
	Kind schema.GroupVersionKind
	// Partial is set when discovery of the group failed, so the kind may still exist.
	Partial bool
}

// Error returns a sentence for conditions.
func (e *UnknownKindError) Error() string {
	text := fmt.Sprintf("the server doesn't have a resource type %q", e.Kind.Kind)
	if e.Partial {
		return text + fmt.Sprintf(" now: discovery of group %s is incomplete, its API server does not answer", e.Kind.Group)
	}
	return text + fmt.Sprintf(" in %s: install its CustomResourceDefinition, or correct apiVersion and kind", e.Kind.GroupVersion())
}

// Mapper maps kinds to resources. It is safe for concurrent use; one goroutine at a time
// queries the server.
type Mapper struct {
	client *http.Client
	base   *url.URL
	clock  clock.PassiveClock

	mu sync.Mutex
	// legacy is set for servers without aggregated discovery.
	legacy bool
	// pages holds what was read of each path: two pages for a server with aggregated
	// discovery, else one for each requested group and version.
	pages map[string]page
}

// New returns a mapper for the API server of cfg. It sends nothing before the first
// lookup.
func New(cfg *rest.Config, clk clock.PassiveClock) (*Mapper, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the server address for discovery: %w", err)
	}
	return &Mapper{client: client, base: base, clock: clk, pages: map[string]page{}}, nil
}

// Resource returns the resource of a kind. An unknown kind is looked up at the server
// again, at most once a second over all kinds. An UnknownKindError is a missing kind, any
// other a server that does not answer.
func (m *Mapper) Resource(ctx context.Context, gvk schema.GroupVersionKind) (Mapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, ok := m.lookup(gvk); ok {
		return found, nil
	}
	if err := m.refresh(ctx, gvk.GroupVersion()); err != nil {
		return Mapping{}, err
	}
	if found, ok := m.lookup(gvk); ok {
		return found, nil
	}
	return Mapping{}, &UnknownKindError{Kind: gvk, Partial: m.stale(gvk.Group)}
}

// Served returns the version under which a resource that was once written can be read
// now: the same version if it is still served, else another one of the group. False means
// that the server no longer has such a resource; a group whose discovery failed is an
// error, because absence is then not certain.
func (m *Mapper) Served(ctx context.Context, gvr schema.GroupVersionResource) (schema.GroupVersionResource, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, ok := m.version(gvr); ok {
		return found, true, nil
	}
	if err := m.refreshGroup(ctx, gvr.GroupVersion()); err != nil {
		return gvr, false, err
	}
	if found, ok := m.version(gvr); ok {
		return found, true, nil
	}
	if m.stale(gvr.Group) {
		return gvr, false, &UnknownKindError{Kind: gvr.GroupVersion().WithKind(gvr.Resource), Partial: true}
	}
	return gvr, false, nil
}

// Invalidate lets the next lookup of an unknown kind query the server at once. Known
// kinds stay known.
func (m *Mapper) Invalidate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, p := range m.pages {
		p.read = time.Time{}
		m.pages[path] = p
	}
}

// Reset forgets everything; call it when a request to a resource that was found here gets
// "no such path". The next lookup queries the server.
func (m *Mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.pages)
}

func (m *Mapper) lookup(gvk schema.GroupVersionKind) (Mapping, bool) {
	for _, p := range m.pages {
		if found, ok := p.table.kinds[gvk]; ok {
			return found, true
		}
	}
	return Mapping{}, false
}

func (m *Mapper) stale(group string) bool {
	for _, p := range m.pages {
		if p.table.stale[group] {
			return true
		}
	}
	return false
}

// version returns gvr itself, or else the lowest-named other version of it.
func (m *Mapper) version(gvr schema.GroupVersionResource) (schema.GroupVersionResource, bool) {
	var versions []string
	for _, p := range m.pages {
		for gvk, mapping := range p.table.kinds {
			if gvk.Group == gvr.Group && mapping.Resource.Resource == gvr.Resource {
				versions = append(versions, gvk.Version)
			}
		}
	}
	if len(versions) == 0 {
		return gvr, false
	}
	if !slices.Contains(versions, gvr.Version) {
		gvr.Version = slices.Min(versions)
	}
	return gvr, true
}
