// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hidden replaces what may be secret.
const hidden = "REDACTED"

// isOfHub reports whether a definition belongs to a group of the hub.
func isOfHub(u *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	return strings.HasSuffix(group, ".open-cluster-management.io")
}

// kept are the fields that are kept of kinds that others fill in, besides the metadata; of the
// other kinds everything is kept that does not look secret.
var kept = map[string][][]string{
	"Deployment":                {{"spec", "replicas"}, {"spec", "template", "spec", "containers"}, {"status"}},
	"Pod":                       {{"spec", "nodeName"}, {"spec", "containers"}, {"status", "phase"}, {"status", "conditions"}, {"status", "containerStatuses"}},
	"Event":                     {{"involvedObject"}, {"reason"}, {"message"}, {"type"}, {"count"}, {"firstTimestamp"}, {"lastTimestamp"}, {"eventTime"}},
	"CertificateSigningRequest": {{"spec", "signerName"}, {"spec", "username"}, {"spec", "groups"}, {"status", "conditions"}},
	"CustomResourceDefinition":  {{"status"}},
}

// keptMeta are the fields of metadata that are kept; annotations only by their names.
var keptMeta = []string{"name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp", "deletionTimestamp", "finalizers", "labels",
	"ownerReferences"}

// redacted returns what may be shown of an object.
func redacted(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}
	meta, _, _ := unstructured.NestedMap(u.Object, "metadata")
	shown := map[string]any{}
	for _, key := range keptMeta {
		if value, ok := meta[key]; ok {
			shown[key] = clean(value, "metadata", key)
		}
	}
	if len(u.GetAnnotations()) > 0 {
		names := map[string]any{}
		for name := range u.GetAnnotations() {
			names[name] = hidden
		}
		shown["annotations"] = names
	}
	out["metadata"] = shown
	paths, known := kept[u.GetKind()]
	if !known {
		for _, key := range []string{"spec", "status"} {
			if value, ok := u.Object[key]; ok {
				out[key] = clean(value, "", key)
			}
		}
		return out
	}
	for _, path := range paths {
		value, ok, _ := unstructured.NestedFieldCopy(u.Object, path...)
		if !ok {
			continue
		}
		last := path[len(path)-1]
		if last == "containers" {
			value = containers(value)
		}
		_ = unstructured.SetNestedField(out, clean(value, "", last), path...)
	}
	return out
}

// containers keeps the names and images of containers: their arguments and environment may be
// anything.
func containers(list any) any {
	var out []any
	items, _ := list.([]any)
	for _, item := range items {
		if c, ok := item.(map[string]any); ok {
			out = append(out, map[string]any{"name": c["name"], "image": c["image"]})
		}
	}
	return out
}

var (
	// values are the fields that hold whatever a user or a program has put there.
	values = []string{"value", "string", "jsonRaw", "args", "command", "env", "data", "stringData", "binaryData", "caBundle", "request", "certificate"}
	// named are the fields in which a value is one of the API itself.
	named = []string{"taints", "tolerations"}
	// suspects are parts of the names of fields that hold credentials.
	suspects = []string{"token", "password", "passwd", "credential", "privatekey", "kubeconfig", "authorization", "apikey"}
)

// clean returns a value without what may be secret; under is the field that it is in, and above
// the one around that.
func clean(value any, above, under string) any {
	switch v := value.(type) {
	case string:
		switch {
		case hides(above, under):
			return hidden
		case under == "image" || under == "imageID":
			return v // the digest in it looks like a key
		}
		return Scrub(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = cleanItem(item, above, under)
		}
		return out
	case map[string]any:
		return cleanFields(v, under)
	}
	return value
}

// cleanItem cleans an item of a list.
func cleanItem(item any, above, under string) any {
	m, ok := item.(map[string]any)
	switch {
	case above == "workload" && under == "manifests" && ok:
		return manifest(m)
	case slices.Contains(values, under):
		return hidden
	case under == "clusterClaims" && ok:
		return claim(m)
	}
	return clean(item, above, under)
}

// cleanFields cleans the fields of an object; of data only the keys are kept, and of an object
// under a suspect name nothing.
func cleanFields(v map[string]any, under string) any {
	data := strings.Contains(strings.ToLower(under), "data")
	if slices.Contains(values, under) && !data || isSuspect(under) {
		return hidden
	}
	out := map[string]any{}
	for key, item := range v {
		if data && slices.Contains(values, under) {
			out[key] = hidden
			continue
		}
		out[key] = clean(item, under, key)
	}
	return out
}

// hides reports whether the text of a field is not to be shown.
func hides(above, under string) bool {
	if slices.Contains(values, under) {
		return under != "value" || !slices.Contains(named, above)
	}
	return isSuspect(under)
}

// isSuspect reports whether a field's name says that it holds a credential.
func isSuspect(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(suspects, func(part string) bool { return strings.Contains(lower, part) })
}

// manifest keeps of a manifest in a work which object it is.
func manifest(m map[string]any) map[string]any {
	meta, _ := m["metadata"].(map[string]any)
	return map[string]any{"apiVersion": m["apiVersion"], "kind": m["kind"], "metadata": map[string]any{"name": meta["name"], "namespace": meta["namespace"]}}
}

// claim keeps the values of the claims that the API defines.
func claim(m map[string]any) map[string]any {
	name, _ := m["name"].(string)
	if value, ok := m["value"].(string); ok && (strings.HasSuffix(name, ".open-cluster-management.io") || strings.HasSuffix(name, ".k8s.io")) {
		return map[string]any{"name": name, "value": Scrub(value)}
	}
	return map[string]any{"name": name, "value": hidden}
}

// secrets are what credentials look like in any text: PEM blocks, tokens of accounts and of
// bootstrap, headers, assignments, values that a server has refused, users in addresses, and long
// runs of base64.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z ]+-----[^-]*(-----END [A-Z ]+-----)?`),
	regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*){0,2}`),
	regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`),
	regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`),
	regexp.MustCompile(`(?i)\b[\w-]*(token|password|passwd|pwd|secret|apikey|api-key|access-key)["']?(\s*[=:]\s*["']?|\s+["'])[^\s"',;&}]+`),
	regexp.MustCompile(`Invalid value: ("[^"]*"|[^:,]+)`),
	regexp.MustCompile(`//[^/\s@]+@`),
	regexp.MustCompile(`[A-Za-z0-9+/_-]{64,}={0,2}`),
}

// Scrub replaces everything in a text that looks like a credential.
func Scrub(text string) string {
	for _, pattern := range secrets {
		replacement := hidden
		if strings.HasPrefix(pattern.String(), "//") {
			replacement = "//" + hidden + "@"
		}
		text = pattern.ReplaceAllString(text, replacement)
	}
	return text
}
