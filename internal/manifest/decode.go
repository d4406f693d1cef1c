// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

const (
	// MaxBytes bounds one manifest. Admission on the hub allows 500 KiB for all manifests
	// of a work; this bound protects an agent whose hub has no admission.
	MaxBytes = 1 << 20
	// MaxDepth bounds the nesting of objects and lists. The deepest field of the
	// Kubernetes kinds is at about 20, that of a CustomResourceDefinition that describes
	// itself at about 60.
	MaxDepth = 200
	// maxQuoted bounds how much of the input a message quotes, in bytes.
	maxQuoted = 64
)

// Error describes what is wrong with a manifest.
type Error struct {
	// Field is the path of the field, empty for the manifest as a whole.
	Field string
	// Problem and Fix are sentence parts: "must be set", "give the object a name".
	Problem, Fix string
}

// Error returns, for example, "metadata.name: must be set; give the object a name".
func (e *Error) Error() string {
	text := e.Problem + "; " + e.Fix
	if e.Field == "" {
		return text
	}
	return e.Field + ": " + text
}

// Decode reads one manifest. The error is an *Error and never contains values of the
// manifest, except its names.
func Decode(raw []byte) (*unstructured.Unstructured, error) {
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return nil, &Error{Problem: "the manifest is empty", Fix: "remove it from workload.manifests"}
	case len(raw) > MaxBytes:
		return nil, &Error{"", fmt.Sprintf("the manifest has %d bytes, more than the limit of %d", len(raw), MaxBytes), "split it"}
	case Depth(raw) > MaxDepth:
		return nil, &Error{"", fmt.Sprintf("the manifest nests deeper than %d levels", MaxDepth), "flatten it"}
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, &Error{Problem: "the manifest is not JSON", Fix: "correct its syntax"}
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, &Error{Problem: "the manifest is not an object", Fix: "write apiVersion, kind and metadata"}
	}
	if err := check(content); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// Depth returns how deep objects and lists nest in raw, without decoding it. Brackets
// inside strings do not count; for text that is not JSON the result is undefined.
func Depth(raw []byte) int {
	var level, deepest int
	var quoted, escaped bool
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// check rejects what no API server could accept as a named object.
func check(content map[string]any) error {
	apiVersion, err := text(content, "", "apiVersion", "write the group and version, for example apps/v1")
	if err != nil {
		return err
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return &Error{Field: "apiVersion", Problem: "has more than one slash", Fix: "write group/version"}
	}
	if _, err := text(content, "", "kind", "write the kind, for example ConfigMap"); err != nil {
		return err
	}
	if _, isList := content["items"].([]any); isList && content["metadata"] == nil {
		return &Error{Field: "items", Problem: "a list is not an object", Fix: "put each item into workload.manifests"}
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return &Error{Field: "metadata", Problem: "must be an object", Fix: "give the object a name"}
	}
	return checkMetadata(metadata)
}

func checkMetadata(metadata map[string]any) error {
	if prefix, ok := metadata["generateName"].(string); ok && prefix != "" {
		return &Error{"metadata.generateName", "must not be set", "set metadata.name, so that the object can be found again"}
	}
	for _, field := range []string{"name", "namespace"} {
		if err := checkSegment(metadata, field); err != nil {
			return err
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		if value := metadata[field]; value != nil {
			if err := checkStrings(value, "metadata."+field); err != nil {
				return err
			}
		}
	}
	return checkOwners(metadata["ownerReferences"])
}

// checkSegment makes sure that a name is one segment of a request path.
func checkSegment(metadata map[string]any, field string) error {
	if value := metadata[field]; field == "namespace" && (value == nil || value == "") {
		return nil
	}
	s, err := text(metadata, "metadata.", field, "give the object a name")
	if err != nil {
		return err
	}
	if faults := content.IsPathSegmentName(s); len(faults) > 0 {
		return &Error{"metadata." + field, faults[0], fmt.Sprintf("correct %q", excerpt.Of(s, maxQuoted))}
	}
	return nil
}

// checkStrings makes sure that a value is an object whose fields are strings.
func checkStrings(value any, field string) error {
	entries, ok := value.(map[string]any)
	if !ok {
		return notObject(field)
	}
	for key, v := range entries {
		if _, ok := v.(string); !ok {
			return notString(fmt.Sprintf("%s[%s]", field, excerpt.Of(key, maxQuoted)))
		}
	}
	return nil
}

func notObject(field string) error {
	return &Error{field, "must be an object", "write key: value pairs"}
}

func notString(field string) error {
	return &Error{field, "must be a string", "put the value in quotes"}
}

func checkOwners(value any) error {
	if value == nil {
		return nil
	}
	owners, ok := value.([]any)
	if !ok || slices.ContainsFunc(owners, func(o any) bool {
		owner, _ := o.(map[string]any)
		uid, _ := owner["uid"].(string)
		return uid == ""
	}) {
		return &Error{"metadata.ownerReferences", "must be a list of objects with a uid", "correct or remove it"}
	}
	return nil
}

// text reads a required string field.
func text(object map[string]any, prefix, field, fix string) (string, error) {
	s, ok := object[field].(string)
	switch {
	case object[field] == nil || (ok && s == ""):
		return "", &Error{prefix + field, "must be set", fix}
	case !ok:
		return "", notString(prefix + field)
	}
	return s, nil
}
