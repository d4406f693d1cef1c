// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podKind is a kind that runs pods.
type podKind struct {
	// resource is its name in containerID.
	resource string
	// path leads to the pod's spec.
	path []string
	// classic kinds get the credentials in every namespace, as the field does it;
	// pods of the others would wait for a secret that only the install namespace has.
	classic bool
}

var templated = []string{"spec", "template", "spec"}

var podKinds = map[schema.GroupKind]podKind{
	{Group: "apps", Kind: "Deployment"}:  {"deployments", templated, true},
	{Group: "apps", Kind: "DaemonSet"}:   {"daemonsets", templated, true},
	{Group: "apps", Kind: "StatefulSet"}: {"statefulsets", templated, false},
	{Group: "apps", Kind: "ReplicaSet"}:  {"replicasets", templated, false},
	{Group: "batch", Kind: "Job"}:        {"jobs", templated, false},
	{Group: "batch", Kind: "CronJob"}:    {"cronjobs", []string{"spec", "jobTemplate", "spec", "template", "spec"}, false},
	{Kind: "Pod"}:                        {"pods", []string{"spec"}, false},
}

// workload is an object that runs pods.
type workload struct {
	object
	kind podKind
	// pod is the spec of its pods.
	pod map[string]any
	// containers are its containers and init containers.
	containers []container
}

// container is one container of a workload and its path in the manifest.
type container struct {
	fields map[string]any
	at     string
}

// workload finds the containers of an object that runs pods.
func (r *render) workload(o object) (w workload, ok bool, err error) {
	kind, ok := podKinds[o.GroupVersionKind().GroupKind()]
	if !ok {
		return w, false, nil
	}
	w = workload{object: o, kind: kind, pod: o.Object}
	for i, name := range kind.path {
		if w.pod, ok = w.pod[name].(map[string]any); !ok {
			return w, false, r.fault(o, strings.Join(kind.path[:i+1], "."), "must be an object", "describe the pods there")
		}
	}
	for _, field := range []string{"initContainers", "containers"} {
		items, err := r.listOf(o, w.pod, strings.Join(kind.path, "."), field)
		if err != nil {
			return w, false, err
		}
		at := strings.Join(kind.path, ".") + "." + field
		if field == "containers" && len(items) == 0 {
			return w, false, r.fault(o, at, "must be set", "name at least one container")
		}
		for i, fields := range items {
			w.containers = append(w.containers, container{fields: fields, at: fmt.Sprintf("%s[%d]", at, i)})
		}
	}
	return w, true, nil
}

// listOf reads a field that is a list of objects; absent and null are an empty one.
func (r *render) listOf(o object, parent map[string]any, at, field string) ([]map[string]any, error) {
	path := strings.TrimPrefix(at+"."+field, ".")
	value := parent[field]
	if value == nil {
		return nil, nil
	}
	items, ok := value.([]any)
	if !ok {
		return nil, r.fault(o, path, "must be a list", "write one object an item")
	}
	out := make([]map[string]any, 0, len(items))
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, r.fault(o, fmt.Sprintf("%s[%d]", path, i), "must be an object", "write its fields")
		}
		out = append(out, fields)
	}
	return out, nil
}

// put adds an item to a list of objects that are told apart by a field. One with the
// same key is replaced when the new one shall win, and else stays.
func (r *render) put(o object, parent map[string]any, at, field, key string, item map[string]any, wins bool) error {
	items, err := r.listOf(o, parent, at, field)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(items, func(m map[string]any) bool { return m[key] == item[key] }); i >= 0 {
		if wins {
			parent[field].([]any)[i] = item
		}
		return nil
	}
	list, _ := parent[field].([]any)
	parent[field] = append(list, item)
	return nil
}

// podPath is where the spec of the pods stands in the manifest.
func (w workload) podPath() string { return strings.Join(w.kind.path, ".") }
