// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// apiVersion is one version of a definition.
type apiVersion struct {
	name            string
	served, storage bool
}

// versionsOf returns the versions of a definition, in its order.
func versionsOf(definition *unstructured.Unstructured) []apiVersion {
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	out := make([]apiVersion, len(list))
	for i := range list {
		fields, _ := list[i].(map[string]any)
		out[i].name, _ = fields["name"].(string)
		out[i].served, _ = fields["served"].(bool)
		out[i].storage, _ = fields["storage"].(bool)
	}
	return out
}

// staleStore is a definition whose objects may be stored in versions that end.
type staleStore struct {
	definition *unstructured.Unstructured
	// gone are versions that the hub's own definition no longer has: the API server refuses that
	// one. hidden are others that are not served.
	gone, hidden []string
	// target is the version to store everything in; empty if there is none. from and to are the
	// indexes of the versions that are and will be stored now.
	target   string
	from, to int
}

// staleStoreOf compares the versions in which a definition is stored with those that it serves, and
// with those of the hub's own definition unless that is nil; nil if all are served.
func staleStoreOf(definition, own *unstructured.Unstructured) *staleStore {
	live := versionsOf(definition)
	kept := live
	if own != nil {
		kept = versionsOf(own)
	}
	s := &staleStore{definition: definition, from: -1, to: -1}
	stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	for _, name := range stored {
		switch {
		case !has(kept, name) && isBefore(name, kept):
			s.gone = append(s.gone, name)
		case !slices.ContainsFunc(live, func(v apiVersion) bool { return v.name == name && v.served }):
			s.hidden = append(s.hidden, name)
		}
	}
	if s.gone == nil && s.hidden == nil {
		return nil
	}
	s.choose(live, kept)
	return s
}

// choose sets the version to store everything in: the one that is stored now if it stays, or else the
// newest of those that stay.
func (s *staleStore) choose(live, kept []apiVersion) {
	s.from = slices.IndexFunc(live, func(v apiVersion) bool { return v.storage })
	for i, v := range live {
		if !v.served || !has(kept, v.name) {
			continue
		}
		if s.to < 0 || i == s.from || s.to != s.from && version.CompareKubeAwareVersionStrings(v.name, s.target) > 0 {
			s.to, s.target = i, v.name
		}
	}
}

func has(versions []apiVersion, name string) bool {
	return slices.ContainsFunc(versions, func(v apiVersion) bool { return v.name == name })
}

// isBefore reports whether a version is older than the one that is stored: a newer one belongs to a
// newer release.
func isBefore(name string, versions []apiVersion) bool {
	return slices.ContainsFunc(versions, func(v apiVersion) bool {
		return v.storage && version.CompareKubeAwareVersionStrings(name, v.name) < 0
	})
}

// stored reports kinds of the hub whose objects may be stored in a version that is no longer served.
func (h *hubCheck) stored(ctx context.Context, definitions []unstructured.Unstructured) ([]Finding, error) {
	var out []Finding
	for i := range definitions {
		name := definitions[i].GetName()
		own, err := crd.Any(name)
		if err != nil || !strings.HasSuffix(name, hubGroups) { // nothing of the hub
			continue
		}
		if h.others {
			own = nil
		}
		s := staleStoreOf(&definitions[i], own)
		if s == nil {
			continue
		}
		fix, err := s.fix(ctx, h.o.Hub)
		if err != nil {
			return out, err
		}
		title := name + " may be stored in " + fleet.Listed(slices.Concat(s.gone, s.hidden)) + ", which is no longer served"
		if s.gone != nil {
			out = append(out, failure(CodeHubStored, title, "Kubernetes refuses the hub's definition until nothing is stored in "+fleet.Listed(s.gone), fix))
		} else {
			out = append(out, warning(CodeHubStored, title, "a later release that leaves it out is refused until nothing is stored in it", fix))
		}
	}
	return out, nil
}

// fix stores every object in the target version, then takes the others out of the status.
func (s *staleStore) fix(ctx context.Context, on *fleet.Cluster) (fleet.Fix, error) {
	name := s.definition.GetName()
	if s.target == "" {
		return ShowYAML.On(on, "resource", "crd", "name", name), nil
	}
	plural, group, _ := strings.Cut(name, ".")
	api := on.Client.Resource(schema.GroupVersionResource{Group: group, Version: s.target, Resource: plural})
	some, err := api.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fleet.Explain("listing "+plural, on, err)
	}
	values := map[string]any{"status": map[string]any{"storedVersions": []string{s.target}}}
	status, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	rewrite := ""
	if len(some.Items) > 0 { // kubectl replace fails on an empty list
		rewrite = name
	}
	change, err := s.change()
	return StoreAgain.On(on, "definition", name, "change", change, "rewrite", rewrite, "status", string(status)), err
}

// change returns the JSON patch that makes the target the version in which objects are stored; empty
// if it is.
func (s *staleStore) change() (string, error) {
	if s.from == s.to {
		return "", nil
	}
	type step struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value bool   `json:"value"`
	}
	at := func(i int) string { return "/spec/versions/" + strconv.Itoa(i) + "/storage" }
	patch, err := json.Marshal([]step{{"replace", at(s.from), false}, {"replace", at(s.to), true}})
	return string(patch), err
}
