// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// Words are the flags that make up the spec of a placement.
type Words struct {
	// Sets to select from; none means all sets bound to the namespace.
	Sets []string
	// Labels and Claims are selectors, CEL are expressions. Each is a predicate of its
	// own, of which a cluster must match one; with And it must match all.
	Labels, Claims, CEL []string
	And                 bool
	// Count is how many clusters to select; nil means all that match.
	Count *int32
	// Prioritizers are [BuiltIn:]NAME[:WEIGHT] or AddOn:RESOURCE:SCORE[:WEIGHT].
	// Exact ranks by them only.
	Prioritizers []string
	Exact        bool
	// Tolerations are KEY[=VALUE][:EFFECT][:DURATION], "*" for every key.
	Tolerations []string
	// Spread are [label:|claim:]KEY[:MAXSKEW[:WHEN]].
	Spread []string
	// Groups are NAME=SELECTOR or NAME=claim:SELECTOR. GroupSize is the maximum number
	// of clusters in a group: a number or a percentage.
	Groups    []string
	GroupSize string
	// SortBy is ClusterName or Score.
	SortBy string
}

// Spec builds the spec. An error about a value names its flag; rules about the
// placement as a whole are left to schedule.Validate.
func (w *Words) Spec() (clusterv1beta1.PlacementSpec, error) {
	spec := clusterv1beta1.PlacementSpec{ClusterSets: w.Sets, NumberOfClusters: w.Count, SortBy: clusterv1beta1.SortBy(w.SortBy)}
	for _, read := range []func(*clusterv1beta1.PlacementSpec) error{w.predicates, w.prioritizers, w.tolerations, w.spread, w.groups} {
		if err := read(&spec); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

// wrongValue returns the usage error for the value of a flag.
func wrongValue(flag, value, cause, example string) error {
	return fleet.Misuse(fmt.Sprintf("wrong value %q for --%s", value, flag), cause, fleet.Advice("for example "+example))
}

// splitSelectors splits a list of label selectors at its commas, except those in
// parentheses: "env=prod,region in (eu,us)" are two.
func splitSelectors(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			out, from = append(out, text[from:i]), i+1
		}
	}
	return append(out, text[from:])
}

func (w *Words) predicates(spec *clusterv1beta1.PlacementSpec) error {
	var all []clusterv1beta1.ClusterSelector
	for _, text := range w.Labels {
		selector, err := nonEmptySelector("label-selectors", text, "--label-selectors region=eu")
		if err != nil {
			return err
		}
		all = append(all, clusterv1beta1.ClusterSelector{LabelSelector: *selector})
	}
	for _, text := range w.Claims {
		selector, err := nonEmptySelector("claim-selectors", text, "--claim-selectors platform.open-cluster-management.io=aws")
		if err != nil {
			return err
		}
		all = append(all, clusterv1beta1.ClusterSelector{ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: expressions(selector)}})
	}
	for _, text := range w.CEL {
		if strings.TrimSpace(text) == "" {
			return wrongValue("cel", text, "it is empty", `--cel 'managedCluster.metadata.labels["env"] == "prod"'`)
		}
		all = append(all, clusterv1beta1.ClusterSelector{CELSelector: clusterv1beta1.ClusterCELSelector{CELExpressions: []string{text}}})
	}
	if w.And {
		all = allOf(all)
	}
	for _, s := range all {
		spec.Predicates = append(spec.Predicates, clusterv1beta1.ClusterPredicate{RequiredClusterSelector: s})
	}
	return nil
}

// allOf merges the selectors into one that a cluster must match in every part.
func allOf(all []clusterv1beta1.ClusterSelector) []clusterv1beta1.ClusterSelector {
	if len(all) < 2 {
		return all
	}
	var one clusterv1beta1.ClusterSelector
	for _, s := range all {
		one.LabelSelector.MatchExpressions = append(one.LabelSelector.MatchExpressions, expressions(&s.LabelSelector)...)
		one.ClaimSelector.MatchExpressions = append(one.ClaimSelector.MatchExpressions, s.ClaimSelector.MatchExpressions...)
		one.CELSelector.CELExpressions = append(one.CELSelector.CELExpressions, s.CELSelector.CELExpressions...)
	}
	return []clusterv1beta1.ClusterSelector{one}
}

// nonEmptySelector parses a selector that must not select everything.
func nonEmptySelector(flag, text, example string) (*metav1.LabelSelector, error) {
	selector, err := cluster.Selector(text)
	if err != nil {
		return nil, wrongValue(flag, text, fleet.OneLine(err.Error()), example)
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, wrongValue(flag, text, "it selects everything", example)
	}
	return selector, nil
}

// expressions returns all requirements of a selector as expressions.
func expressions(s *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	var out []metav1.LabelSelectorRequirement
	for key, value := range s.MatchLabels {
		out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
	}
	slices.SortFunc(out, func(a, b metav1.LabelSelectorRequirement) int { return strings.Compare(a.Key, b.Key) })
	return append(out, s.MatchExpressions...)
}

func (w *Words) prioritizers(spec *clusterv1beta1.PlacementSpec) error {
	if w.Exact {
		if len(w.Prioritizers) == 0 {
			return fleet.Misuse("--exact ranks by the given prioritizers only, and none is given", "",
				fleet.Advice("add --prioritizer, for example --prioritizer ResourceAllocatableCPU"))
		}
		spec.PrioritizerPolicy.Mode = clusterv1beta1.PrioritizerPolicyModeExact
	}
	const example = "--prioritizer Steady:2,ResourceAllocatableCPU:-1 or --prioritizer AddOn:usage:cpuAvailable:3"
	for _, text := range w.Prioritizers {
		parts := strings.Split(text, ":")
		at := &clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn}
		switch {
		case parts[0] == string(clusterv1beta1.ScoreCoordinateTypeAddOn):
			if len(parts) < 3 || parts[1] == "" || parts[2] == "" {
				return wrongValue("prioritizer", text, "it is not AddOn:RESOURCE:SCORE[:WEIGHT]", example)
			}
			at.Type, at.AddOn = clusterv1beta1.ScoreCoordinateTypeAddOn, &clusterv1beta1.AddOnScore{ResourceName: parts[1], ScoreName: parts[2]}
			parts = parts[3:]
		case parts[0] == string(clusterv1beta1.ScoreCoordinateTypeBuiltIn) && len(parts) > 1:
			at.BuiltIn, parts = parts[1], parts[2:]
		default:
			at.BuiltIn, parts = parts[0], parts[1:]
		}
		known := []string{clusterv1beta1.PrioritizerBalance, clusterv1beta1.PrioritizerSteady, clusterv1beta1.PrioritizerResourceAllocatableCPU,
			clusterv1beta1.PrioritizerResourceAllocatableMemory}
		if at.AddOn == nil && !slices.Contains(known, at.BuiltIn) {
			return fleet.Misuse(fmt.Sprintf("wrong value %q for --prioritizer", text), fmt.Sprintf("there is no prioritizer %q", at.BuiltIn),
				fleet.Advice("use "+strings.Join(known, ", ")+", or AddOn:RESOURCE:SCORE"))
		}
		weight, err := weightOf(parts)
		if err != nil {
			return wrongValue("prioritizer", text, err.Error(), example)
		}
		spec.PrioritizerPolicy.Configurations = append(spec.PrioritizerPolicy.Configurations, clusterv1beta1.PrioritizerConfig{ScoreCoordinate: at, Weight: &weight})
	}
	return nil
}

// weightOf parses the weight; the default is 1.
func weightOf(parts []string) (int32, error) {
	if len(parts) == 0 {
		return 1, nil
	}
	n, err := strconv.ParseInt(parts[0], 10, 32)
	if err != nil || len(parts) > 1 || n < -10 || n > 10 {
		return 0, fmt.Errorf("the weight %q is not an integer from -10 to 10", strings.Join(parts, ":"))
	}
	return int32(n), nil
}

func (w *Words) tolerations(spec *clusterv1beta1.PlacementSpec) error {
	const example = "--toleration gpu=true:NoSelect, --toleration cluster.open-cluster-management.io/unreachable:NoSelect:300s or --toleration '*'"
	effects := []clusterv1.TaintEffect{clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectPreferNoSelect, clusterv1.TaintEffectNoSelectIfNew}
	for _, text := range w.Tolerations {
		key, rest, more := strings.Cut(text, ":")
		t := clusterv1beta1.Toleration{Key: key, Operator: clusterv1beta1.TolerationOpExists}
		if name, value, both := strings.Cut(key, "="); both {
			t.Key, t.Value, t.Operator = name, value, clusterv1beta1.TolerationOpEqual
		}
		switch t.Key {
		case "":
			return wrongValue("toleration", text, "it names no taint", example)
		case "*":
			t.Key = ""
		}
		for more {
			var word string
			word, rest, more = strings.Cut(rest, ":")
			if slices.Contains(effects, clusterv1.TaintEffect(word)) && t.Effect == "" {
				t.Effect = clusterv1.TaintEffect(word)
				continue
			}
			d, err := time.ParseDuration(word)
			if err != nil || d < time.Second || t.TolerationSeconds != nil {
				return wrongValue("toleration", text, fmt.Sprintf("%q is neither an effect (NoSelect, PreferNoSelect, NoSelectIfNew) nor a duration of at least one second",
					word), example)
			}
			seconds := int64(d / time.Second)
			t.TolerationSeconds = &seconds
		}
		spec.Tolerations = append(spec.Tolerations, t)
	}
	return nil
}

func (w *Words) spread(spec *clusterv1beta1.PlacementSpec) error {
	const example = "--spread region, --spread region:2:DoNotSchedule or --spread claim:zone"
	for _, text := range w.Spread {
		parts := strings.Split(text, ":")
		t := clusterv1beta1.SpreadConstraintsTerm{TopologyKeyType: clusterv1beta1.TopologyKeyTypeLabel, MaxSkew: 1, WhenUnsatisfiable: clusterv1beta1.ScheduleAnyway}
		switch parts[0] {
		case "claim":
			t.TopologyKeyType, parts = clusterv1beta1.TopologyKeyTypeClaim, parts[1:]
		case "label":
			parts = parts[1:]
		}
		if len(parts) == 0 || parts[0] == "" || len(parts) > 3 {
			return wrongValue("spread", text, "it is not [label:|claim:]KEY[:MAXSKEW[:WHEN]]", example)
		}
		t.TopologyKey = parts[0]
		if len(parts) > 1 {
			n, err := strconv.ParseInt(parts[1], 10, 32)
			if err != nil || n < 1 {
				return wrongValue("spread", text, fmt.Sprintf("the skew %q is not a number above 0", parts[1]), example)
			}
			t.MaxSkew = int32(n)
		}
		if len(parts) > 2 {
			if t.WhenUnsatisfiable = clusterv1beta1.UnsatisfiableMaxSkewAction(parts[2]); t.WhenUnsatisfiable != clusterv1beta1.DoNotSchedule &&
				t.WhenUnsatisfiable != clusterv1beta1.ScheduleAnyway {
				return wrongValue("spread", text, fmt.Sprintf("%q is neither DoNotSchedule nor ScheduleAnyway", parts[2]), example)
			}
		}
		spec.SpreadPolicy.SpreadConstraints = append(spec.SpreadPolicy.SpreadConstraints, t)
	}
	return nil
}

func (w *Words) groups(spec *clusterv1beta1.PlacementSpec) error {
	const example = "--group canary=env=canary or --group aws=claim:platform.open-cluster-management.io=aws"
	strategy := &spec.DecisionStrategy.GroupStrategy
	for _, text := range w.Groups {
		name, rest, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return wrongValue("group", text, "it is not NAME=SELECTOR", example)
		}
		rest, byClaim := strings.CutPrefix(rest, "claim:")
		selector, err := nonEmptySelector("group", rest, example)
		if err != nil {
			return err
		}
		g := clusterv1beta1.DecisionGroup{GroupName: name}
		if byClaim {
			g.GroupClusterSelector.ClaimSelector.MatchExpressions = expressions(selector)
		} else {
			g.GroupClusterSelector.LabelSelector = *selector
		}
		strategy.DecisionGroups = append(strategy.DecisionGroups, g)
	}
	if w.GroupSize == "" {
		return nil
	}
	size := intstr.Parse(w.GroupSize)
	if size.Type == intstr.Int && size.IntVal < 1 || size.Type == intstr.String && !strings.HasSuffix(size.StrVal, "%") {
		return wrongValue("clusters-per-group", w.GroupSize, "it is neither a number above 0 nor a percentage", "--clusters-per-group 25%")
	}
	strategy.ClustersPerDecisionGroup = &size
	return nil
}
