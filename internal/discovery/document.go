// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// document is the part of APIGroupDiscoveryList (apidiscovery.k8s.io) that is
// used; v2 and v2beta1 agree on it.
type document struct {
	Kind  string `json:"kind"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Freshness string `json:"freshness"`
			Resources []struct {
				Resource     string                   `json:"resource"`
				ResponseKind *metav1.GroupVersionKind `json:"responseKind"`
				Scope        string                   `json:"scope"`
				Verbs        []string                 `json:"verbs"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

// table holds the contents of one page. It is never changed after it is built.
type table struct {
	// kinds holds every kind that objects can be read of.
	kinds map[schema.GroupVersionKind]Mapping
	// stale holds the groups that the document marks as outdated, or whose API server did
	// not answer.
	stale map[string]bool
}

func newTable() *table {
	return &table{kinds: map[schema.GroupVersionKind]Mapping{}, stale: map[string]bool{}}
}

const (
	aggregatedKind  = "APIGroupDiscoveryList"
	scopeNamespaced = "Namespaced"
	freshnessStale  = "Stale"
)

// read adds an aggregated document to the table; false means that the server returned
// another kind of document.
func (t *table) read(body []byte) (bool, error) {
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		return false, fmt.Errorf("decoding the discovery document: %w", err)
	}
	if d.Kind != aggregatedKind {
		return false, nil
	}
	for _, group := range d.Items {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Metadata.Name, Version: version.Version}
			if version.Freshness == freshnessStale {
				t.stale[gv.Group] = true
			}
			for _, r := range version.Resources {
				if r.ResponseKind != nil && slices.Contains(r.Verbs, "get") {
					t.add(gv, r.ResponseKind.Kind, r.Resource, r.Scope == scopeNamespaced)
				}
			}
		}
	}
	return true, nil
}

// readVersion adds the document of one group and version (APIResourceList).
func (t *table) readVersion(gv schema.GroupVersion, body []byte) error {
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("decoding the resources of %s: %w", gv, err)
	}
	for _, r := range list.APIResources {
		if slices.Contains(r.Verbs, "get") && !strings.Contains(r.Name, "/") { // no subresource
			t.add(gv, r.Kind, r.Name, r.Namespaced)
		}
	}
	return nil
}

// add keeps the first resource of a kind: servers list the resource that stores the
// objects before those that only show them.
func (t *table) add(gv schema.GroupVersion, kind, resource string, namespaced bool) {
	if _, known := t.kinds[gv.WithKind(kind)]; !known {
		t.kinds[gv.WithKind(kind)] = Mapping{Resource: gv.WithResource(resource), Namespaced: namespaced}
	}
}
