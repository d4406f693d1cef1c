// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// hashOf returns the same hash for specs that mean the same, however they are formatted.
func hashOf(spec workv1.ManifestWorkSpec) (digest.Sum, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return digest.Sum{}, fmt.Errorf("encoding the spec of a manifestwork: %w", err)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return digest.Sum{}, fmt.Errorf("reading the spec of a manifestwork: %w", err)
	}
	return digest.Of(plain), nil
}

// Child is a ManifestWork of the replica set.
type Child struct {
	// Cluster is its namespace.
	Cluster string
	// Name, UID and Version are those of the object.
	Name    string
	UID     types.UID
	Version string
	// Placement is the one that it was created for, by its label.
	Placement string
	// Current is set when its spec is that of the template.
	Current bool
	// Labels are all its labels, Given is how many of them this loop set.
	Labels map[string]string
	Given  int
	// Deleting is set while it is being deleted.
	Deleting bool
	// Created is when it was created, Changed when this loop last wrote it.
	Created, Changed time.Time
	// Generation is that of its spec, Conditions are those of the whole work.
	Generation int64
	Conditions []metav1.Condition
}

// kept is what is remembered of a ManifestWork with the label of a replica set.
type kept struct {
	owner reconcile.Key
	// child is complete except for Current, which depends on the template's hash.
	child Child
	hash  digest.Sum
	// leaving is set while the work is being made to orphan its objects before it is
	// deleted.
	leaving bool
}

// keep reduces a ManifestWork to what this loop needs: metadata, work-level conditions
// without their messages, a hash of the spec, and when this loop last wrote it. A fleet
// holds one ManifestWork per cluster, each with all its manifests.
func keep(u *unstructured.Unstructured) (kept, bool) {
	key, ok := owner(u.GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet])
	if !ok {
		return kept{}, false
	}
	w, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return kept{}, false
	}
	hash, err := hashOf(w.Spec)
	if err != nil {
		return kept{}, false
	}
	_, leaving := w.Annotations[workv1.AnnotationKept]
	k := kept{owner: key, hash: hash, leaving: leaving, child: Child{
		Cluster: w.Namespace, Name: w.Name, UID: w.UID, Version: w.ResourceVersion, Placement: w.Labels[workv1alpha1.LabelPlacementName],
		Labels: w.Labels, Deleting: w.DeletionTimestamp != nil, Created: w.CreationTimestamp.Time, Changed: w.CreationTimestamp.Time,
		Generation: w.Generation,
	}}
	for _, f := range w.ManagedFields {
		if f.Manager != fieldManager || f.Subresource != "" {
			continue
		}
		if f.Time != nil && f.Time.After(k.child.Changed) {
			k.child.Changed = f.Time.Time
		}
		if f.Operation == metav1.ManagedFieldsOperationApply && f.FieldsV1 != nil {
			k.child.Given = labelsIn(f.FieldsV1.GetRawBytes())
		}
	}
	for _, c := range w.Status.Conditions {
		c.Message = ""
		k.child.Conditions = append(k.child.Conditions, c)
	}
	return k, true
}

// labelsIn counts the labels in a set of managed fields.
func labelsIn(fields []byte) int {
	var set struct {
		Metadata struct {
			Labels map[string]struct{} `json:"f:labels"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal(fields, &set); err != nil {
		return 0
	}
	delete(set.Metadata.Labels, ".")
	return len(set.Metadata.Labels)
}

// state returns the state of the rollout on the child's cluster.
func (c Child) state() rollout.Cluster {
	out := rollout.Cluster{Name: c.Cluster, Status: rollout.Progressing, Since: c.Changed}
	if !c.Current {
		out.Status = rollout.ToApply
		return out
	}
	if !c.is(workv1.ConditionApplied) {
		return out
	}
	progressing := apimeta.FindStatusCondition(c.Conditions, workv1.ConditionProgressing)
	degraded := apimeta.FindStatusCondition(c.Conditions, workv1.ConditionDegraded)
	bad := c.is(workv1.ConditionDegraded)
	switch {
	case degraded != nil && degraded.ObservedGeneration != c.Generation:
	case progressing == nil && bad:
		out.Status, out.Since = rollout.Failed, c.since(degraded)
	case progressing == nil:
		// Without rules that report progress, being available is success.
		if c.is(workv1.ConditionAvailable) {
			out.Status, out.Since = rollout.Succeeded, c.since(apimeta.FindStatusCondition(c.Conditions, workv1.ConditionAvailable))
		}
	case progressing.ObservedGeneration != c.Generation:
	case progressing.Status == metav1.ConditionFalse:
		out.Status, out.Since = rollout.Succeeded, c.since(progressing)
	case progressing.Status == metav1.ConditionTrue && bad:
		out.Status, out.Since = rollout.Failed, c.since(degraded)
	default:
		out.Since = c.since(progressing)
	}
	return out
}

// is reports whether the condition is True for the current generation.
func (c Child) is(kind string) bool {
	have := apimeta.FindStatusCondition(c.Conditions, kind)
	return have != nil && have.Status == metav1.ConditionTrue && have.ObservedGeneration == c.Generation
}

// since returns when the condition got its status, but not before the spec that it refers
// to was written.
func (c Child) since(condition *metav1.Condition) time.Time {
	return slices.MaxFunc([]time.Time{c.Changed, condition.LastTransitionTime.Time}, time.Time.Compare)
}

// label returns the label value that marks the children of a replica set.
func label(key reconcile.Key) string { return key.Namespace + "." + key.Name }

// owner parses that label; a namespace has no dot.
func owner(value string) (reconcile.Key, bool) {
	namespace, name, ok := strings.Cut(value, ".")
	return reconcile.Key{Namespace: namespace, Name: name}, ok && namespace != "" && name != ""
}

// nameOf returns the name of new children: that of the replica set with a hash, since
// replica sets of two namespaces may have the same name.
func nameOf(key reconcile.Key) string {
	sum := sha256.Sum256([]byte(label(key)))
	return key.Name + "-" + hex.EncodeToString(sum[:5])
}
