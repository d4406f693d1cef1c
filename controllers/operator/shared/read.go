// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Decode decodes a watched object. Its definition admits specs that cannot be decoded, for example
// with a duration that overflows: the problem then says why, and the spec is empty.
func Decode[T any](u *unstructured.Unstructured) (object *T, problem string, err error) {
	if object, err = typed.FromUnstructured[T](u); err == nil {
		return object, "", nil
	}
	problem = "the spec cannot be read, and what runs is left as it is: " + err.Error()
	delete(u.Object, "spec")
	object, err = typed.FromUnstructured[T](u)
	return object, problem, err
}

// Explain returns the text of a failed request in one line, with what helps against it.
func Explain(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	switch {
	case apierrors.IsForbidden(err):
		return text + " (permit it, or change what refuses it; it is tried again)"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return text + " (correct the spec, or change what refuses it; it is tried again)"
	case apierrors.ReasonForError(err) != "":
		return text + " (it is tried again)"
	}
	return text
}
