// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// pathOf returns the key of an object: COLLECTION|NAMESPACE|NAME.
func pathOf(u *unstructured.Unstructured) string {
	plural, _ := apimeta.UnsafeGuessKindToResource(u.GroupVersionKind())
	prefix := "/apis/" + plural.Group + "/" + plural.Version
	if plural.Group == "" {
		prefix = "/api/" + plural.Version
	}
	return prefix + "/" + plural.Resource + "|" + u.GetNamespace() + "|" + u.GetName()
}

// read answers a get, a list or a watch.
func (s *Server) read(w http.ResponseWriter, q *http.Request, r request) {
	if r.name != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		u := s.objects[r.key()]
		if u == nil {
			refuse(w, http.StatusNotFound, "NotFound", r.name+" not found", r.name)
			return
		}
		answer(w, http.StatusOK, u.Object)
		return
	}
	selector, err := labels.Parse(q.URL.Query().Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error(), "")
		return
	}
	name := strings.TrimPrefix(q.URL.Query().Get("fieldSelector"), "metadata.name=")
	wanted := func(u *unstructured.Unstructured) bool {
		return selector.Matches(labels.Set(u.GetLabels())) && (name == "" || u.GetName() == name)
	}
	prefix := strings.TrimSuffix(r.collection, "|") + "|"
	if q.URL.Query().Get("watch") != "" {
		s.watch(w, q, prefix, wanted)
		return
	}
	s.list(w, prefix, wanted)
}

func (s *Server) list(w http.ResponseWriter, prefix string, wanted func(*unstructured.Unstructured) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if u := s.objects[key]; strings.HasPrefix(key, prefix) && wanted(u) {
			items = append(items, u.Object)
		}
	}
	answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "List", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}})
}

// watch sends events until the client disconnects.
func (s *Server) watch(w http.ResponseWriter, q *http.Request, prefix string, wanted func(*unstructured.Unstructured) bool) {
	events := make(chan event, 100)
	s.mu.Lock()
	s.watchers[events] = prefix
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, events)
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case <-q.Context().Done():
			return
		case e := <-events:
			if wanted(&unstructured.Unstructured{Object: e.Object}) {
				_ = json.NewEncoder(w).Encode(e)
				flusher.Flush()
			}
		}
	}
}

func answer(w http.ResponseWriter, code int, value any) {
	answerAs(w, "application/json", code, value)
}

func answerAs(w http.ResponseWriter, media string, code int, value any) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

// refuse responds with a Status, as an API server does.
func refuse(w http.ResponseWriter, code int, reason, message, name string) {
	answer(w, code, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code,
		"details": map[string]any{"name": name}})
}
