// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"slices"
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
	return i.GroupResource() + " " + strings.TrimPrefix(i.Namespace+"/"+i.Name, "/")
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
	strategy := firstFor(spec, id, func(c *workv1.ManifestConfigOption) bool { return c.UpdateStrategy != nil }).UpdateStrategy
	if strategy == nil || strategy.Type == "" {
		return o, nil
	}
	o.Strategy = strategy.Type
	if o.Strategy != workv1.UpdateStrategyTypeServerSideApply {
		return o, nil
	}
	c := cmp.Or(strategy.ServerSideApply, &workv1.ServerSideApplyConfig{})
	o.Force, o.Manager, o.Ignore = c.Force, cmp.Or(c.FieldManager, workv1.DefaultFieldManager), c.IgnoreFields
	if !strings.HasPrefix(o.Manager, workv1.DefaultFieldManager) {
		return o, fmt.Errorf("updateStrategy.serverSideApply.fieldManager: must begin with %s; correct it", workv1.DefaultFieldManager)
	}
	_, err := ignore.Parse(o.Ignore)
	return o, err
}

// Rules are what a work wants reported about one object.
type Rules struct {
	// Feedback selects the values that are copied to the status.
	Feedback []workv1.FeedbackRule
	// Conditions define the conditions derived from the object's state.
	Conditions []workv1.ConditionRule
}

// RulesFor returns the rules of a work for one object. Feedback and condition rules are
// chosen separately: of each, those of the first matching entry that has any. Poll and
// Watch make no difference here: values are pushed when the object changes.
func RulesFor(spec *workv1.ManifestWorkSpec, id ID) Rules {
	return Rules{
		Feedback:   firstFor(spec, id, func(c *workv1.ManifestConfigOption) bool { return len(c.FeedbackRules) > 0 }).FeedbackRules,
		Conditions: firstFor(spec, id, func(c *workv1.ManifestConfigOption) bool { return len(c.ConditionRules) > 0 }).ConditionRules,
	}
}

// firstFor returns the first entry about the object that has what is asked for; an empty
// one if there is none.
func firstFor(spec *workv1.ManifestWorkSpec, id ID, has func(*workv1.ManifestConfigOption) bool) *workv1.ManifestConfigOption {
	for i := range spec.ManifestConfigs {
		if c := &spec.ManifestConfigs[i]; has(c) && matches(c.ResourceIdentifier, id) {
			return c
		}
	}
	return &workv1.ManifestConfigOption{}
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
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	for ok {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(text, part)
		}
		_, text, ok = strings.Cut(text, part)
		rest = more
	}
	return false
}

// Owned reports whether an object is deleted with its work according to the delete
// option. Rules match exactly.
func Owned(o *workv1.DeleteOption, id ID) bool {
	switch {
	case o == nil:
	case o.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan:
		return false
	case o.PropagationPolicy == workv1.DeletePropagationPolicyTypeSelectivelyOrphan && o.SelectivelyOrphans != nil:
		return !slices.ContainsFunc(o.SelectivelyOrphans.OrphaningRules, func(r workv1.OrphaningRule) bool {
			return id == ID{r.Group, r.Resource, r.Namespace, r.Name}
		})
	}
	return true
}
