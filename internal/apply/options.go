// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply/ignore"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// ID identifies an object of a cluster in any version.
type ID struct {
	// Group and Resource are the API group and the plural.
	Group, Resource string
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
}

// IDOf returns the ID of an object of a resource.
func IDOf(gvr schema.GroupVersionResource, namespace, name string) ID {
	return ID{Group: gvr.Group, Resource: gvr.Resource, Namespace: namespace, Name: name}
}

// GroupResource returns, for example, "deployments.apps".
func (i ID) GroupResource() string {
	return schema.GroupResource{Group: i.Group, Resource: i.Resource}.String()
}

// String returns, for example, "deployments.apps shop/web".
func (i ID) String() string {
	resource := i.GroupResource()
	if i.Namespace == "" {
		return resource + " " + i.Name
	}
	return resource + " " + i.Namespace + "/" + i.Name
}

// Options control how one object is applied.
type Options struct {
	// Strategy is one of the four of the API; empty means Update.
	Strategy workv1.UpdateStrategyType
	// Manager is the field manager.
	Manager string
	// Force takes fields over from other managers.
	Force bool
	// Owned is true if the object is deleted with the work.
	Owned bool
	// Ignore names fields that the apply leaves as they are on the cluster.
	Ignore []workv1.IgnoreField
}

// OptionsFor returns the options of a work for one object: the first matching entry that
// names a strategy decides. An error names the option of the work that this agent cannot
// honour; an *ignore.Error has a condition reason of its own.
func OptionsFor(spec *workv1.ManifestWorkSpec, id ID) (Options, error) {
	o := Options{
		Strategy: workv1.UpdateStrategyTypeUpdate, Manager: workv1.DefaultFieldManager, Force: true,
		Owned: Owned(spec.DeleteOption, id),
	}
	strategy := strategyFor(spec, id)
	if strategy == nil || strategy.Type == "" {
		return o, nil
	}
	o.Strategy = strategy.Type
	if o.Strategy != workv1.UpdateStrategyTypeServerSideApply {
		return o, nil
	}
	o.Force = false
	c := strategy.ServerSideApply
	if c == nil {
		return o, nil
	}
	o.Force = c.Force
	if c.FieldManager != "" {
		o.Manager = c.FieldManager
	}
	if !strings.HasPrefix(o.Manager, workv1.DefaultFieldManager) {
		return o, fmt.Errorf("updateStrategy.serverSideApply.fieldManager: must begin with %s; correct it", workv1.DefaultFieldManager)
	}
	if len(c.IgnoreFields) == 0 {
		return o, nil
	}
	o.Ignore = c.IgnoreFields
	_, err := ignore.Parse(c.IgnoreFields)
	return o, err
}

func strategyFor(spec *workv1.ManifestWorkSpec, id ID) *workv1.UpdateStrategy {
	for i := range spec.ManifestConfigs {
		c := &spec.ManifestConfigs[i]
		if c.UpdateStrategy != nil && matches(c.ResourceIdentifier, id) {
			return c.UpdateStrategy
		}
	}
	return nil
}

// Rules are what a work wants reported about one object.
type Rules struct {
	// Feedback selects the values that are copied to the status.
	Feedback []workv1.FeedbackRule
	// Conditions define the conditions derived from the object's state.
	Conditions []workv1.ConditionRule
}

// None reports whether there are no rules.
func (r Rules) None() bool { return len(r.Feedback) == 0 && len(r.Conditions) == 0 }

// RulesFor returns the rules of a work for one object. Feedback and condition rules are
// chosen separately: of each, those of the first matching entry that has any. Poll and
// Watch make no difference here: values are pushed when the object changes.
func RulesFor(spec *workv1.ManifestWorkSpec, id ID) Rules {
	var r Rules
	for i := range spec.ManifestConfigs {
		c := &spec.ManifestConfigs[i]
		feedback := len(r.Feedback) == 0 && len(c.FeedbackRules) > 0
		conditions := len(r.Conditions) == 0 && len(c.ConditionRules) > 0
		if (!feedback && !conditions) || !matches(c.ResourceIdentifier, id) {
			continue
		}
		if feedback {
			r.Feedback = c.FeedbackRules
		}
		if conditions {
			r.Conditions = c.ConditionRules
		}
	}
	return r
}

// matches reports whether a manifestConfigs entry is about the object. Group and resource
// must be equal; name and namespace may contain "*" for any text.
func matches(r workv1.ResourceIdentifier, id ID) bool {
	return r.Group == id.Group && r.Resource == id.Resource &&
		glob(r.Namespace, id.Namespace) && glob(r.Name, id.Name)
}

// glob matches text against a pattern in which "*" stands for any text. It makes at most
// one pass over the text for each star.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	if len(text) < len(last) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[:len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// Owned reports whether an object is deleted with its work according to the delete
// option. Rules match exactly.
func Owned(o *workv1.DeleteOption, id ID) bool {
	if o == nil {
		return true
	}
	switch o.PropagationPolicy {
	case workv1.DeletePropagationPolicyTypeOrphan:
		return false
	case workv1.DeletePropagationPolicyTypeSelectivelyOrphan:
		if o.SelectivelyOrphans == nil {
			return true
		}
		for _, r := range o.SelectivelyOrphans.OrphaningRules {
			if r.Group == id.Group && r.Resource == id.Resource && r.Namespace == id.Namespace && r.Name == id.Name {
				return false
			}
		}
	}
	return true
}
