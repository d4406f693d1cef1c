// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// serverFields are written only by the API server. A manifest that was saved from a
// cluster contains them; they would make an apply fail or bind it to an object of another
// cluster.
var serverFields = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields", "selfLink", "generateName",
}

// Clean removes from the object what only a server writes, null creation times of
// embedded templates, and the namespace of a cluster-scoped object. It moves stringData
// of a Secret into data, and removes the rules of an aggregated ClusterRole. It changes
// u.
func Clean(u *unstructured.Unstructured, namespaced bool) error {
	metadata, _ := u.Object["metadata"].(map[string]any)
	for _, field := range serverFields {
		delete(metadata, field)
	}
	if !namespaced {
		delete(metadata, "namespace")
	} else if u.GetNamespace() == "" {
		return &Error{"metadata.namespace", "must be set, because " + u.GetKind() + " is namespaced", "name the namespace"}
	}
	dropNullTimes(u.Object)
	if isAggregated(u) {
		delete(u.Object, "rules")
	}
	if IsSecret(u.GetAPIVersion(), u.GetKind()) {
		return foldStringData(u.Object)
	}
	return nil
}

// isAggregated reports whether u is a ClusterRole whose rules the cluster aggregates from
// other roles; rules in the manifest would be overwritten again and again.
func isAggregated(u *unstructured.Unstructured) bool {
	rule, _ := u.Object["aggregationRule"].(map[string]any)
	return len(rule) > 0 && u.GetKind() == "ClusterRole" && u.GroupVersionKind().Group == "rbac.authorization.k8s.io"
}

// IsSecret reports whether the kind is Secret, whose content must never appear in a
// message.
func IsSecret(apiVersion, kind string) bool { return apiVersion == "v1" && kind == "Secret" }

// dropNullTimes removes "creationTimestamp": null, which older tools write into every
// metadata, at any depth. Decode has bounded the depth.
func dropNullTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		if at, present := v["creationTimestamp"]; present && at == nil {
			delete(v, "creationTimestamp")
		}
		for _, child := range v {
			dropNullTimes(child)
		}
	case []any:
		for _, child := range v {
			dropNullTimes(child)
		}
	}
}

// foldStringData moves stringData into data, where the API server stores it; otherwise
// its field ownership would hide drift of data.
func foldStringData(secret map[string]any) error {
	value := secret["stringData"]
	delete(secret, "stringData")
	if value == nil {
		return nil
	}
	if err := checkStrings(value, "stringData"); err != nil {
		return err
	}
	data, ok := secret["data"].(map[string]any)
	if !ok {
		if secret["data"] != nil {
			return notObject("data")
		}
		data = map[string]any{}
	}
	for key, v := range value.(map[string]any) {
		s, _ := v.(string)
		data[key] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	secret["data"] = data
	return nil
}
