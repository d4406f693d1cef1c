// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Action is what happened to an object, or would happen in a dry run.
type Action string

// The actions, in kubectl's words.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Deleted    Action = "deleted"
)

// Change is one object and what happened to it.
type Change struct {
	// Object is the whole object in a dry run, else its kind and name.
	Object *unstructured.Unstructured
	// Action is what happened.
	Action Action
	// Live is the object before the change; nil when there was none. It is set when a diff was
	// requested.
	Live *unstructured.Unstructured
	// On is the managed cluster that has the object, when that is not the cluster the request
	// went to.
	On string
}

// Withheld reports whether the object is a secret, which a dry run names but does not print:
// with its values the output would leak them, without them it could be applied and break what
// reads the secret.
func (c Change) Withheld() bool {
	return c.Object.GetKind() == "Secret" && len(c.Object.Object) > len(Reference(c.Object).Object)
}

// MarshalJSON writes the object and the action.
func (c Change) MarshalJSON() ([]byte, error) {
	object := c.Object
	if c.Withheld() {
		object = Reference(object)
	}
	return json.Marshal(map[string]any{"object": object.Object, "action": c.Action})
}

// Name returns the object as kubectl names it: resource.group/name.
func (c Change) Name() string { return ObjectName(c.Object) }

// ObjectName names an object as kubectl does: resource.group/name.
func ObjectName(u *unstructured.Unstructured) string {
	gvk := u.GroupVersionKind()
	kind := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		kind += "." + gvk.Group
	}
	return kind + "/" + u.GetName()
}

// Reference returns an object with only kind and name.
func Reference(u *unstructured.Unstructured) *unstructured.Unstructured {
	return Named(u.GroupVersionKind(), u.GetNamespace(), u.GetName())
}

// Named returns an object with only kind, namespace and name, for a Change.
func Named(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(gvk)
	out.SetNamespace(namespace)
	out.SetName(name)
	return out
}

// Worst folds the actions of many objects into one for all of them: any change outranks
// unchanged.
func Worst(changes []Change) Action {
	out := Unchanged
	for _, c := range changes {
		switch {
		case c.Action == Created && out == Unchanged:
			out = Created
		case c.Action == Configured, c.Action == Deleted:
			return c.Action
		}
	}
	return out
}

// Names returns the names of the objects.
func Names(changes []Change) []string {
	out := make([]string, 0, len(changes))
	for _, c := range changes {
		out = append(out, c.Name())
	}
	return out
}

// Documents returns the objects that can be applied, in the order to apply them: namespaces,
// definitions, RBAC, the rest. Secrets are left out.
func Documents(changes []Change) []map[string]any {
	sorted := slices.DeleteFunc(slices.Clone(changes), Change.Withheld)
	slices.SortStableFunc(sorted, func(a, b Change) int { return cmp.Compare(rank(a.Object), rank(b.Object)) })
	out := make([]map[string]any, 0, len(sorted))
	for _, c := range sorted {
		out = append(out, c.Object.Object)
	}
	return out
}

func rank(u *unstructured.Unstructured) int {
	switch u.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	case "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return 2
	case "ClusterManager", "Klusterlet":
		return 4
	}
	return 3
}

// Redact returns a copy of a secret without its values. A kubeconfig loses only its
// credentials, so that the rest can be checked.
func Redact(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil || u.GetKind() != "Secret" {
		return u
	}
	out := u.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(out.Object, field)
		for k := range values {
			text, _ := values[k].(string)
			values[k] = redactedValue(k, text, field == "data")
		}
		if len(values) > 0 {
			out.Object[field] = values
		}
	}
	return out
}

// Describe names an object for progress lines.
func Describe(u *unstructured.Unstructured) string {
	if ns := u.GetNamespace(); ns != "" {
		return fmt.Sprintf("%s %s/%s", u.GetKind(), ns, u.GetName())
	}
	return fmt.Sprintf("%s %s", u.GetKind(), u.GetName())
}

// RedactedToken replaces a token in output.
const RedactedToken = "REDACTED"

// redactedValue returns what a dry run shows of a secret's value.
func redactedValue(key, text string, encoded bool) string {
	if key == "kubeconfig" {
		raw := []byte(text)
		if encoded {
			raw, _ = base64.StdEncoding.DecodeString(text)
		}
		if kc, err := clientcmd.Load(raw); err == nil {
			for _, user := range kc.AuthInfos {
				*user = clientcmdapi.AuthInfo{Token: RedactedToken}
			}
			if out, err := clientcmd.Write(*kc); err == nil {
				text = string(out)
				if encoded {
					text = base64.StdEncoding.EncodeToString(out)
				}
				return text
			}
		}
	}
	if encoded {
		return base64.StdEncoding.EncodeToString([]byte(RedactedToken))
	}
	return RedactedToken
}
