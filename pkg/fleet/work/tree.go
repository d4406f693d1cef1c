// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// Tree is one work on one cluster with its objects.
type Tree struct {
	Info
	// Conditions are those that rules make for the whole work.
	Conditions []Condition `json:"conditions,omitempty"`
	// Manifests are its objects, in the order of the spec.
	Manifests []Object `json:"manifests"`
}

// Object is one object of a work as its agent reported it.
type Object struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Applied and Available are the status of the condition; "" when absent.
	Applied   string `json:"applied,omitempty"`
	Available string `json:"available,omitempty"`
	// Feedback holds the values that rules read from it.
	Feedback []Value `json:"feedback,omitempty"`
	// Conditions are those that rules make for it.
	Conditions []Condition `json:"conditions,omitempty"`
	// Message is the first trouble, else anything special.
	Message string `json:"message,omitempty"`
}

// Value is one value of status feedback, as text.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Condition is a condition that a rule made.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// ReadTrees returns works with their objects, by cluster and name.
func ReadTrees(ctx context.Context, o ListOptions) ([]Tree, error) {
	var out []Tree
	err := o.visit(ctx, func(info Info, w *workv1.ManifestWork) { out = append(out, treeOf(info, w)) })
	return out, err
}

func treeOf(info Info, w *workv1.ManifestWork) Tree {
	tree := Tree{Info: info, Conditions: ruleConditions(w.Status.Conditions)}
	for i, m := range w.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(m.Raw); err != nil {
			tree.Manifests = append(tree.Manifests, Object{Name: fmt.Sprintf("manifests[%d]", i), Message: "it is not an object: " + fleet.OneLine(err.Error())})
			continue
		}
		tree.Manifests = append(tree.Manifests, reportOf(w, i, object))
	}
	return tree
}

// reportOf returns the i-th object with what the agent reported of it. A report about an older
// spec may have the object at another index, or not at all.
func reportOf(w *workv1.ManifestWork, i int, object *unstructured.Unstructured) Object {
	gvk := object.GroupVersionKind()
	o := Object{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
	list := w.Status.ResourceStatus.Manifests
	is := func(m workv1.ManifestCondition) bool {
		r := m.ResourceMeta
		return r.Kind == o.Kind && r.Group == o.Group && r.Name == o.Name && (r.Namespace == o.Namespace || r.Namespace == "")
	}
	at := slices.IndexFunc(list, func(m workv1.ManifestCondition) bool { return int(m.ResourceMeta.Ordinal) == i && is(m) })
	if at < 0 {
		at = slices.IndexFunc(list, is)
	}
	if at < 0 {
		return o
	}
	m := list[at]
	o.Applied = cluster.ConditionStatus(m.Conditions, workv1.ConditionApplied)
	o.Available = cluster.ConditionStatus(m.Conditions, workv1.ConditionAvailable)
	for _, v := range m.StatusFeedback.Values {
		o.Feedback = append(o.Feedback, Value{v.Name, valueText(v.FieldValue)})
	}
	o.Conditions, o.Message = ruleConditions(m.Conditions), troubleMessage(m.Conditions)
	return o
}

// troubleMessage returns the message of the first condition of an object that reports trouble, else
// what the agent remarks on it.
func troubleMessage(conditions []metav1.Condition) string {
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable, workv1.ConditionStatusFeedbackSynced} {
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return fleet.OneLine(c.Message)
		}
	}
	if c := apimeta.FindStatusCondition(conditions, workv1.ConditionDegraded); c != nil && c.Status == metav1.ConditionTrue {
		return fleet.OneLine(c.Message)
	}
	return noteOf(conditions)
}

// ruleConditions returns the conditions that rules made, by type.
func ruleConditions(conditions []metav1.Condition) []Condition {
	var out []Condition
	for _, c := range conditions {
		if strings.HasPrefix(c.Reason, workv1.ReasonPrefixConditionRule) {
			out = append(out, Condition{c.Type, string(c.Status), fleet.OneLine(c.Message)})
		}
	}
	slices.SortFunc(out, func(a, b Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// valueText formats a value of status feedback.
func valueText(v workv1.FieldValue) string {
	switch {
	case v.Integer != nil:
		return strconv.FormatInt(*v.Integer, 10)
	case v.Boolean != nil:
		return strconv.FormatBool(*v.Boolean)
	case v.String != nil:
		return fleet.OneLine(*v.String)
	case v.JSONRaw != nil:
		return fleet.OneLine(*v.JSONRaw)
	}
	return ""
}
