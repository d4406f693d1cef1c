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
	// resource is the name of the kind in a containerID.
	resource string
	// path is the path of the pod spec.
	path []string
	// classic kinds get the credentials in every namespace, as in Open Cluster Management;
	// pods of other kinds would wait for a secret that only the install namespace has.
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
	// pod is its pod spec.
	pod map[string]any
	// containers are its containers and init containers.
	containers []container
}

// container is one container of a workload and its path in the manifest.
type container struct {
	fields map[string]any
	at     string
}

// workload returns the workload of an object that runs pods; ok is false if it runs none.
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

// listOf reads a field that is a list of objects; absent and null count as empty.
func (r *render) listOf(o object, parent map[string]any, at, field string) ([]map[string]any, error) {
	path := strings.TrimPrefix(at+"."+field, ".")
	value := parent[field]
	if value == nil {
		return nil, nil
	}
	items, ok := value.([]any)
	if !ok {
		return nil, r.fault(o, path, "must be a list", "write one object per item")
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

// list describes a list of objects with a key field.
type list struct {
	name, key string
	// replaced is true if an item of the hub replaces one of the template with the same key;
	// otherwise that of the template stays.
	replaced bool
}

var (
	envList    = list{"env", "name", true}
	volumeList = list{"volumes", "name", false}
	mountList  = list{"volumeMounts", "mountPath", false}
)

// putItem adds an item to a list of a container or of the pod spec.
func (r *render) putItem(o object, in container, l list, item map[string]any) error {
	items, err := r.listOf(o, in.fields, in.at, l.name)
	if err != nil {
		return err
	}
	present, _ := in.fields[l.name].([]any)
	switch i := slices.IndexFunc(items, func(m map[string]any) bool { return m[l.key] == item[l.key] }); {
	case i < 0:
		in.fields[l.name] = append(present, item)
	case l.replaced:
		present[i] = item
	}
	return nil
}
