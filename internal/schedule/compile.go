// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	gocel "github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Names of the steps that a problem belongs to, as in conditions and metrics.
const (
	pluginPredicate = "Predicate"
	pluginTaint     = "TaintToleration"
)

// Bounds on a Placement.
const (
	maxWeight            = 10
	maxSpreadConstraints = 8
	// maxPredicates, maxExpressions and maxExpressionBytes bound the predicates of a
	// placement and the CEL in them, which the API does not: a compiled expression takes
	// tens of KiB, and all placements share the process.
	maxPredicates, maxExpressions, maxExpressionBytes = 256, 256, 64 << 10
	// maxEntries bounds tolerations, prioritizers and decision groups each: every entry
	// is compared with every cluster while other placements wait.
	maxEntries       = 256
	defaultScoreRate = time.Minute
	// maxQuoted bounds what is quoted of an invalid value, in bytes.
	maxQuoted = 100
)

// program is a compiled Placement spec: selectors and expressions are compiled, defaults
// filled in.
type program struct {
	problems []Problem
	// broken is true if a problem is an error, and named if decisions can carry the name
	// of the placement.
	broken, named bool

	predicates   []predicate
	tolerations  []clusterv1beta1.Toleration
	prioritizers []prioritizer
	spread       []clusterv1beta1.SpreadConstraintsTerm
	groups       []groupRule
	size         groupSize
	// wanted is numberOfClusters; -1 means all.
	wanted  int
	byScore bool
	rate    time.Duration
}

// selectors are those of a predicate or a decision group.
type selectors struct{ labels, claims labels.Selector }

// match reports whether a cluster has the labels and claims.
func (s *selectors) match(c *cluster) bool {
	return s.labels.Matches(labels.Set(c.object.Labels)) && (s.claims.Empty() || s.claims.Matches(claims(c.object.Status.ClusterClaims)))
}

// predicate is one of spec.predicates.
type predicate struct {
	selectors
	expressions []expression
	// cost is its cost without its expressions, in approximate CEL units.
	cost uint64
}

type expression struct {
	text    string
	program *cel.Program
}

// groupRule is one of the decision groups.
type groupRule struct {
	selectors
	name string
}

// groupSize is clustersPerDecisionGroup: a number or a percentage.
type groupSize struct{ number, percent int }

// of returns the size of a group if total clusters are selected.
func (s groupSize) of(total int) int {
	n := s.number
	if s.percent > 0 {
		n = (total*s.percent + 99) / 100
	}
	if n <= 0 || n > total {
		return total
	}
	return n
}

// Validate returns what is wrong or without effect in a Placement, for admission and the
// plugin. It finds what the API schema does not check, and also what the schema does
// check, for objects that were never validated. Exactly the problems that make Decide
// call a Placement misconfigured have severity SeverityError. The order is that of the
// fields.
func Validate(p *clusterv1beta1.Placement) []Problem {
	return compile(p).problems
}

// compile compiles a Placement. Everything that is wrong is listed in the program's
// problems.
func compile(p *clusterv1beta1.Placement) *program {
	c := &program{wanted: -1, rate: defaultScoreRate}
	if c.named = len(validation.IsValidLabelValue(p.Name)) == 0; !c.named {
		c.error("", "metadata.name", "the name cannot be the value of a label, so no decision can carry it",
			"use a name of at most 63 characters")
	}
	if n := p.Spec.NumberOfClusters; n != nil {
		if c.wanted = max(int(*n), 0); *n < 0 {
			c.error("", "spec.numberOfClusters", fmt.Sprintf("numberOfClusters is %d", *n), "use 0 or more, or leave it out for all clusters that fit")
		}
	}
	for i, one := range c.bounded(p.Spec.Predicates) {
		c.predicate(fmt.Sprintf("spec.predicates[%d].requiredClusterSelector", i), one.RequiredClusterSelector)
	}
	for i, t := range few(c, "spec.tolerations", pluginTaint, p.Spec.Tolerations) {
		c.toleration(fmt.Sprintf("spec.tolerations[%d]", i), t)
	}
	c.policy(p.Spec.PrioritizerPolicy)
	for i, one := range p.Spec.SpreadPolicy.SpreadConstraints {
		c.constraint(fmt.Sprintf("spec.spreadPolicy.spreadConstraints[%d]", i), one)
	}
	if n := len(p.Spec.SpreadPolicy.SpreadConstraints); n > maxSpreadConstraints {
		c.error("", "spec.spreadPolicy.spreadConstraints", fmt.Sprintf("there are %d spread constraints", n), "give at most 8")
	}
	c.strategy(p.Spec.DecisionStrategy.GroupStrategy)
	c.order(p.Spec)
	return c
}

func (c *program) error(plugin, field, message, fix string) {
	c.problems = append(c.problems, Problem{SeverityError, plugin, field, message, fix})
	c.broken = true
}

func (c *program) warn(plugin, field, message, fix string) {
	c.problems = append(c.problems, Problem{SeverityWarning, plugin, field, message, fix})
}

// bounded returns the predicates, or none and a problem if they exceed the bounds.
func (c *program) bounded(all []clusterv1beta1.ClusterPredicate) []clusterv1beta1.ClusterPredicate {
	expressions, size := 0, 0
	for _, one := range all {
		for _, text := range one.RequiredClusterSelector.CELSelector.CELExpressions {
			expressions, size = expressions+1, size+len(text)
		}
	}
	if len(all) <= maxPredicates && expressions <= maxExpressions && size <= maxExpressionBytes {
		return all
	}
	c.error(pluginPredicate, "spec.predicates",
		fmt.Sprintf("there are %d predicates with %d CEL expressions of %d bytes", len(all), expressions, size),
		fmt.Sprintf("give at most %d predicates, %d expressions and %d bytes of them", maxPredicates, maxExpressions, maxExpressionBytes))
	return nil
}

// few returns a list, or none and a problem if it is too long.
func few[T any](c *program, field, plugin string, all []T) []T {
	if len(all) <= maxEntries {
		return all
	}
	c.error(plugin, field, fmt.Sprintf("there are %d of them", len(all)), fmt.Sprintf("give at most %d", maxEntries))
	return nil
}

func (c *program) predicate(field string, s clusterv1beta1.ClusterSelector) {
	p := predicate{selectors: c.selectors(pluginPredicate, field, s.LabelSelector, s.ClaimSelector)}
	for i, text := range s.CELSelector.CELExpressions {
		compiled, err := expressions.Compile(text, gocel.BoolType)
		if err != nil {
			c.error(pluginPredicate, fmt.Sprintf("%s.celSelector.celExpressions[%d]", field, i), "compilation failed: "+err.Error(),
				"give a CEL expression over managedCluster that is true or false")
		}
		p.expressions = append(p.expressions, expression{text, compiled})
	}
	p.cost = 1 + uint64(len(p.expressions))
	for _, selector := range []labels.Selector{p.labels, p.claims} {
		requirements, _ := selector.Requirements()
		p.cost += uint64(len(requirements))
	}
	c.predicates = append(c.predicates, p)
}

func (c *program) selectors(plugin, field string, s metav1.LabelSelector, claims clusterv1beta1.ClusterClaimSelector) selectors {
	return selectors{
		c.selector(plugin, field+".labelSelector", &s),
		c.selector(plugin, field+".claimSelector", &metav1.LabelSelector{MatchExpressions: claims.MatchExpressions}),
	}
}

// selector returns one that matches everything if the given one is invalid.
func (c *program) selector(plugin, field string, s *metav1.LabelSelector) labels.Selector {
	made, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		c.error(plugin, field, excerpt.Within(err.Error(), 3*maxQuoted),
			"operators are In and NotIn with values, Exists and DoesNotExist without; keys and values are those of labels")
		return labels.Everything()
	}
	return made
}

func (c *program) toleration(field string, t clusterv1beta1.Toleration) {
	c.tolerations = append(c.tolerations, t)
	switch t.Operator {
	case clusterv1beta1.TolerationOpExists:
		if t.Value != "" {
			c.error(pluginTaint, field+".value", "If the operator is Exists, the value should be empty.", "leave out the value, or use operator Equal")
		}
	default:
		if t.Key == "" {
			c.error(pluginTaint, field+".operator", "If the key is empty, operator must be Exists.", "use operator Exists, or name the key of the taint")
		}
		if t.Operator != "" && t.Operator != clusterv1beta1.TolerationOpEqual {
			c.warn(pluginTaint, field+".operator", fmt.Sprintf("the operator %s is not known, so it tolerates nothing", quoted(t.Operator)), "use Equal or Exists")
		}
	}
	switch t.Effect {
	case "", clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectPreferNoSelect, clusterv1.TaintEffectNoSelectIfNew:
	default:
		c.warn(pluginTaint, field+".effect", fmt.Sprintf("the effect %s is not known, so it tolerates nothing", quoted(t.Effect)),
			"use NoSelect, PreferNoSelect or NoSelectIfNew, or leave it out for every effect")
	}
	if s := t.TolerationSeconds; s != nil && *s <= 0 {
		c.warn(
			pluginTaint, field+".tolerationSeconds",
			"tolerationSeconds is not above 0, so it tolerates nothing",
			"give a number of seconds, or leave it out to tolerate for ever",
		)
	}
}

func (c *program) constraint(field string, t clusterv1beta1.SpreadConstraintsTerm) {
	if t.TopologyKey == "" {
		c.error("", field+".topologyKey", "topologyKey is empty", "name a label or a claim")
	}
	if t.TopologyKeyType != clusterv1beta1.TopologyKeyTypeLabel && t.TopologyKeyType != clusterv1beta1.TopologyKeyTypeClaim {
		c.error("", field+".topologyKeyType", fmt.Sprintf("the topologyKeyType %s is not known", quoted(t.TopologyKeyType)), "use Label or Claim")
	}
	switch t.WhenUnsatisfiable {
	case "":
		t.WhenUnsatisfiable = clusterv1beta1.ScheduleAnyway
	case clusterv1beta1.ScheduleAnyway, clusterv1beta1.DoNotSchedule:
	default:
		c.error("", field+".whenUnsatisfiable", fmt.Sprintf("whenUnsatisfiable %s is not known", quoted(t.WhenUnsatisfiable)), "use DoNotSchedule or ScheduleAnyway")
	}
	switch {
	case t.MaxSkew == 0: // sent by a client that omits it
		t.MaxSkew = 1
	case t.MaxSkew < 0:
		c.error("", field+".maxSkew", fmt.Sprintf("maxSkew is %d", t.MaxSkew), "use 1 or more")
	}
	if c.wanted < 0 && t.WhenUnsatisfiable == clusterv1beta1.ScheduleAnyway {
		c.warn(
			"", field,
			"ScheduleAnyway without numberOfClusters takes every cluster, so the constraint has no effect",
			"set numberOfClusters, or use DoNotSchedule",
		)
	}
	c.spread = append(c.spread, t)
}

func (c *program) strategy(s clusterv1beta1.GroupStrategy) {
	const base = "spec.decisionStrategy.groupStrategy."
	for i, g := range few(c, base+"decisionGroups", "", s.DecisionGroups) {
		field := fmt.Sprintf("%sdecisionGroups[%d]", base, i)
		if faults := validation.IsValidLabelValue(g.GroupName); len(faults) > 0 || g.GroupName == "" {
			c.error(
				"", field+".groupName",
				fmt.Sprintf("the groupName %s cannot be the value of a label", quoted(g.GroupName)),
				"use 2 to 63 letters, digits, '-', '_' and '.'",
			)
		}
		s := g.GroupClusterSelector
		c.groups = append(c.groups, groupRule{c.selectors("", field+".groupClusterSelector", s.LabelSelector, s.ClaimSelector), g.GroupName})
	}
	if n := s.ClustersPerDecisionGroup; n != nil {
		c.groupSize(base+"clustersPerDecisionGroup", *n)
	}
}

func (c *program) groupSize(field string, n intstr.IntOrString) {
	if n.Type == intstr.Int {
		c.size.number = int(n.IntVal)
		if n.IntVal < 0 {
			c.warn("", field, fmt.Sprintf("clustersPerDecisionGroup is %d, so one group gets all clusters", n.IntVal), "use a number above 0, or a share such as 25%")
		}
		return
	}
	digits, percent := strings.CutSuffix(n.StrVal, "%")
	value, err := strconv.ParseUint(digits, 10, 8)
	switch {
	case !percent:
		c.error("", field, fmt.Sprintf("%.100s invalid type: string is not a percentage", n.StrVal), "write a number without quotes, or a share such as 25%")
	case err != nil || value < 1 || value > 100:
		c.error("", field, fmt.Sprintf("%.100s is not a share of the clusters", n.StrVal), "use 1% to 100%")
	}
	c.size.percent = int(value)
}

// order reads sortBy and scoreRateLimit.
func (c *program) order(s clusterv1beta1.PlacementSpec) {
	switch s.SortBy {
	case "", clusterv1beta1.SortByClusterName:
	case clusterv1beta1.SortByScore:
		c.byScore = true
	default:
		c.error("", "spec.sortBy", fmt.Sprintf("sortBy %s is not known", quoted(s.SortBy)), "use ClusterName or Score")
	}
	if s.ScoreRateLimit == "" {
		return
	}
	rate, err := time.ParseDuration(s.ScoreRateLimit)
	if err != nil || rate < 0 || strings.Trim(s.ScoreRateLimit[:len(s.ScoreRateLimit)-1], "0123456789") != "" {
		c.error("", "spec.scoreRateLimit", fmt.Sprintf("scoreRateLimit %s is not a duration", quoted(s.ScoreRateLimit)),
			"use a number with unit h, m or s, such as 1m")
		return
	}
	c.rate = rate
}

// quoted returns an invalid value as a message quotes it.
func quoted[T ~string](value T) string {
	return strconv.Quote(excerpt.Within(string(value), maxQuoted))
}
