// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// kind is the kind of a prioritizer.
type kind int

const (
	balance kind = iota
	steady
	allocatableCPU
	allocatableMemory
	addOn
)

// String returns the name of the prioritizer, or AddOn for those of add-ons, whose names
// are chosen by users and unbounded.
func (k kind) String() string {
	for name, is := range builtIn {
		if is == k {
			return name
		}
	}
	return string(clusterv1beta1.ScoreCoordinateTypeAddOn)
}

// prioritizer is one part of the score.
type prioritizer struct {
	Prioritizer
	kind kind
	// resource and score are those of an AddOn prioritizer.
	resource, score string
}

// builtIn are the prioritizers that need no add-on.
var builtIn = map[string]kind{
	clusterv1beta1.PrioritizerBalance:                   balance,
	clusterv1beta1.PrioritizerSteady:                    steady,
	clusterv1beta1.PrioritizerResourceAllocatableCPU:    allocatableCPU,
	clusterv1beta1.PrioritizerResourceAllocatableMemory: allocatableMemory,
}

// The highest and the lowest score of a prioritizer.
const maxScore, minScore = 100, -100

// policy reads the prioritizers and their weights.
func (c *compiler) policy(p clusterv1beta1.PrioritizerPolicy) {
	switch p.Mode {
	case "", clusterv1beta1.PrioritizerPolicyModeAdditive:
		c.prioritizer(prioritizer{Prioritizer{clusterv1beta1.PrioritizerBalance, 1}, balance, "", ""})
		c.prioritizer(prioritizer{Prioritizer{clusterv1beta1.PrioritizerSteady, 1}, steady, "", ""})
	case clusterv1beta1.PrioritizerPolicyModeExact:
	default:
		c.error("", "spec.prioritizerPolicy.mode", fmt.Sprintf("incorrect prioritizer policy mode: %.100s", p.Mode), "use Additive or Exact")
	}
	for i, one := range few(c, "spec.prioritizerPolicy.configurations", "", p.Configurations) {
		c.configuration(fmt.Sprintf("spec.prioritizerPolicy.configurations[%d]", i), one)
	}
	c.prioritizers = slices.DeleteFunc(c.prioritizers, func(p prioritizer) bool { return p.Weight == 0 })
}

func (c *compiler) configuration(field string, one clusterv1beta1.PrioritizerConfig) {
	weight := int64(1)
	if one.Weight != nil {
		weight = int64(*one.Weight)
	}
	if weight < -maxWeight || weight > maxWeight {
		c.error("", field+".weight", fmt.Sprintf("the weight is %d", weight), "use -10 to 10")
	}
	at := one.ScoreCoordinate
	field += ".scoreCoordinate"
	if at == nil {
		c.error("", field, "scoreCoordinate field is required", "name a built-in prioritizer or the score of an add-on")
		return
	}
	switch at.Type {
	case "", clusterv1beta1.ScoreCoordinateTypeBuiltIn:
		k, known := builtIn[at.BuiltIn]
		if !known && weight != 0 {
			c.error(
				"", field+".builtIn", fmt.Sprintf("incorrect builtin prioritizer: %.100s", at.BuiltIn),
				"use Balance, Steady, ResourceAllocatableCPU or ResourceAllocatableMemory",
			)
		}
		if known {
			c.prioritizer(prioritizer{Prioritizer{at.BuiltIn, weight}, k, "", ""})
		}
		if at.AddOn != nil {
			c.warn("", field+".addOn", "addOn has no effect beside type BuiltIn", "use type AddOn, or leave out addOn")
		}
	case clusterv1beta1.ScoreCoordinateTypeAddOn:
		if at.AddOn == nil || at.AddOn.ResourceName == "" || at.AddOn.ScoreName == "" {
			c.error("", field+".addOn", "addOn should not be empty", "give resourceName and scoreName")
			return
		}
		name := "AddOn/" + at.AddOn.ResourceName + "/" + at.AddOn.ScoreName
		c.prioritizers = append(c.prioritizers, prioritizer{Prioritizer{name, weight}, addOn, at.AddOn.ResourceName, at.AddOn.ScoreName})
		if at.BuiltIn != "" {
			c.warn("", field+".builtIn", "builtIn has no effect beside type AddOn", "use type BuiltIn, or leave out builtIn")
		}
	default:
		c.error("", field+".type", fmt.Sprintf("the type %s is not known", quoted(at.Type)), "use BuiltIn or AddOn")
	}
}

// prioritizer adds a prioritizer, replacing a built-in one of the same name: the last
// entry counts.
func (c *compiler) prioritizer(p prioritizer) {
	for i := range c.prioritizers {
		if c.prioritizers[i].Name == p.Name {
			c.prioritizers[i] = p
			return
		}
	}
	c.prioritizers = append(c.prioritizers, p)
}

// scorer returns one prioritizer's score for a feasible cluster.
type scorer func(c *cluster) int64

// scorer returns the scorer of a prioritizer for the feasible clusters.
func (d *decider) scorer(p prioritizer, feasible []ranked) scorer {
	switch p.kind {
	case steady:
		return func(c *cluster) int64 {
			if d.isOwn(c) {
				return maxScore
			}
			return 0
		}
	case allocatableCPU, allocatableMemory:
		return resourceScorer(p.kind, feasible)
	case addOn:
		return d.addOnScorer(p)
	default:
		return d.balanceScorer()
	}
}

// balanceScorer prefers clusters with few decisions of other placements.
func (d *decider) balanceScorer() scorer {
	most := d.mostDecisions()
	return func(c *cluster) int64 {
		n := c.decisions - d.ownCount(c)
		if n <= 0 {
			return maxScore
		}
		return 2 * int64(maxScore*(0.5-float64(n)/float64(most)))
	}
}

// mostDecisions returns the largest count of decisions over all clusters, without those
// of this placement.
func (d *decider) mostDecisions() int {
	most, own := 0, map[int]int{}
	for _, slot := range d.s.scratch.owned {
		c := d.s.slots[slot]
		own[c.decisions]++
		most = max(most, c.decisions-d.ownCount(c))
	}
	for n := len(d.s.histogram) - 1; n > most; n-- {
		if d.s.histogram[n] > own[n] {
			return n
		}
	}
	return most
}

// resourceScorer prefers clusters with much allocatable CPU or memory, scaled between the
// lowest and the highest of the feasible clusters.
func resourceScorer(k kind, feasible []ranked) scorer {
	of := func(c *cluster) (float64, bool) { return c.cpu, c.hasCPU }
	if k == allocatableMemory {
		of = func(c *cluster) (float64, bool) { return c.memory, c.hasMemory }
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, f := range feasible {
		if amount, has := of(f.cluster); has {
			low, high = min(low, amount), max(high, amount)
		}
	}
	return func(c *cluster) int64 {
		amount, has := of(c)
		switch {
		case !has:
			return 0
		case low == high:
			return maxScore
		}
		return int64(((amount-low)/(high-low) - 0.5) * 2 * maxScore)
	}
}

// addOnScorer reads scores from AddOnPlacementScores. Expired scores count 0 and give a
// warning; the next expiry determines the recheck.
func (d *decider) addOnScorer(p prioritizer) scorer {
	return func(c *cluster) int64 {
		score := c.score(p.resource)
		if score == nil {
			return 0
		}
		if until := score.Status.ValidUntil; until != nil {
			if !d.recheckAt(until.Time) {
				d.expired(p.resource, c)
				return 0
			}
		}
		for _, item := range score.Status.Scores {
			if item.Name == p.score {
				return min(max(int64(item.Value), minScore), maxScore)
			}
		}
		return 0
	}
}

// expired records a score that has expired.
func (d *decider) expired(resource string, c *cluster) {
	d.expiries = append(d.expiries, c.name+"/"+resource)
}

// maxNames bounds the names in a warning.
const maxNames = 10

// expiredWarning returns the warning about expired scores, in the wording of the
// contract.
func (d *decider) expiredWarning() []string {
	if len(d.expiries) == 0 {
		return nil
	}
	slices.Sort(d.expiries)
	names := slices.Compact(d.expiries)
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return []string{"AddOnPlacementScores " + strings.Join(names, " ") + more + " expired"}
}

// recheckAt reports whether moment is still to come, and if so makes the placement due
// for a recheck then.
func (d *decider) recheckAt(moment time.Time) bool {
	if !d.now.Before(moment) {
		return false
	}
	if d.lookAgain.IsZero() || moment.Before(d.lookAgain) {
		d.lookAgain = moment
	}
	return true
}
