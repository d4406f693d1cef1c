// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// shortDigest is how many bytes of a digest distinguish two manifests of one object.
const shortDigest = 16

// stub is what Slim leaves of a manifest: a JSON list, which no manifest is.
type stub [5]string

// Slim reduces a ManifestWork, for callers that keep thousands of them, to what this
// package and package health read: the identity and digest of each manifest, and of the
// status the conditions of the work, the objects with feedback, and the first that could
// not be applied.
func Slim(w *workv1.ManifestWork) {
	manifests := w.Spec.Workload.Manifests
	for i := range manifests {
		m, err := addonkit.Parse(manifests[i].Raw)
		if err != nil {
			manifests[i].Raw = []byte(`[]`) // the next write drops it
			continue
		}
		raw, err := json.Marshal(stub{m.APIVersion(), m.Kind, m.Namespace, m.Name, digest(m.Raw)})
		if err == nil {
			manifests[i].Raw = raw
		}
	}
	status, failed := &w.Status.ResourceStatus, false
	status.Manifests = slices.DeleteFunc(status.Manifests, func(m workv1.ManifestCondition) bool {
		first := !failed && refusal(&m) != nil
		failed = failed || first
		return len(m.StatusFeedback.Values) == 0 && !first
	})
	for i := range status.Manifests {
		m := &status.Manifests[i]
		if c := refusal(m); c != nil {
			m.Conditions = []metav1.Condition{{Type: c.Type, Status: c.Status, Message: excerpt.Within(c.Message, maxRefusal)}}
		} else {
			m.Conditions = nil
		}
	}
}

// maxRefusal bounds the quoted message about a manifest that could not be applied, in
// bytes.
const maxRefusal = 512

// refusal returns the condition that says that a manifest was not applied, or nil.
func refusal(m *workv1.ManifestCondition) *metav1.Condition {
	c := apimeta.FindStatusCondition(m.Conditions, workv1.ConditionApplied)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return c
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return base64.RawStdEncoding.EncodeToString(sum[:shortDigest])
}

// stubOf returns what Slim left of a manifest; false for a whole manifest.
func stubOf(m workv1.Manifest) (s stub, ok bool) {
	return s, bytes.HasPrefix(m.Raw, []byte("[")) && json.Unmarshal(m.Raw, &s) == nil
}

// idOf returns the identity of a manifest; false if m is not a manifest.
func idOf(m workv1.Manifest) (addonkit.ID, bool) {
	if s, ok := stubOf(m); ok {
		return addonkit.ID{GroupVersionKind: schema.FromAPIVersionAndKind(s[0], s[1]), Namespace: s[2], Name: s[3]}, s[1] != ""
	}
	have, err := addonkit.Parse(m.Raw)
	return have.ID, err == nil
}

// sameManifest reports whether a manifest of an existing work, whole or slim, equals the
// desired one.
func sameManifest(live, want workv1.Manifest) bool {
	if bytes.Equal(live.Raw, want.Raw) {
		return true
	}
	if s, ok := stubOf(live); ok {
		if w, outlined := stubOf(want); outlined {
			return s == w
		}
		return s[4] == digest(want.Raw)
	}
	have, err := addonkit.Parse(live.Raw)
	return err == nil && bytes.Equal(have.Raw, want.Raw)
}
