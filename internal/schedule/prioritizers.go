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

// prioritizer is one part of the score.
type prioritizer struct {
	Prioritizer
	// resource and score are those of an AddOn prioritizer.
	resource, score string
}

// kind returns the name of the prioritizer, or AddOn for those of add-ons, whose names are
// chosen by users and unbounded.
func (p *prioritizer) kind() string {
	if p.resource != "" {
		return string(clusterv1beta1.ScoreCoordinateTypeAddOn)
	}
	return p.Name
}

// builtIn are the prioritizers that need no add-on.
var builtIn = []string{
	clusterv1beta1.PrioritizerBalance, clusterv1beta1.PrioritizerSteady,
	clusterv1beta1.PrioritizerResourceAllocatableCPU, clusterv1beta1.PrioritizerResourceAllocatableMemory,
}

// The highest and the lowest score of a prioritizer.
const maxScore, minScore = 100, -100

// policy reads the prioritizers and their weights.
func (c *program) policy(p clusterv1beta1.PrioritizerPolicy) {
	switch p.Mode {
	case "", clusterv1beta1.PrioritizerPolicyModeAdditive:
		c.prioritizer(clusterv1beta1.PrioritizerBalance, 1)
		c.prioritizer(clusterv1beta1.PrioritizerSteady, 1)
	case clusterv1beta1.PrioritizerPolicyModeExact:
	default:
		c.error("", "spec.prioritizerPolicy.mode", fmt.Sprintf("incorrect prioritizer policy mode: %.100s", p.Mode), "use Additive or Exact")
	}
	for i, one := range few(c, "spec.prioritizerPolicy.configurations", "", p.Configurations) {
		c.configuration(fmt.Sprintf("spec.prioritizerPolicy.configurations[%d]", i), one)
	}
	c.prioritizers = slices.DeleteFunc(c.prioritizers, func(p prioritizer) bool { return p.Weight == 0 })
}

func (c *program) configuration(field string, one clusterv1beta1.PrioritizerConfig) {
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
		if slices.Contains(builtIn, at.BuiltIn) {
			c.prioritizer(at.BuiltIn, weight)
		} else if weight != 0 {
			c.error(
				"", field+".builtIn", fmt.Sprintf("incorrect builtin prioritizer: %.100s", at.BuiltIn),
				"use Balance, Steady, ResourceAllocatableCPU or ResourceAllocatableMemory",
			)
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
		c.prioritizers = append(c.prioritizers, prioritizer{Prioritizer{name, weight}, at.AddOn.ResourceName, at.AddOn.ScoreName})
		if at.BuiltIn != "" {
			c.warn("", field+".builtIn", "builtIn has no effect beside type AddOn", "use type BuiltIn, or leave out builtIn")
		}
	default:
		c.error("", field+".type", fmt.Sprintf("the type %s is not known", quoted(at.Type)), "use BuiltIn or AddOn")
	}
}

// prioritizer adds a built-in prioritizer, or gives it another weight: the last entry
// counts.
func (c *program) prioritizer(name string, weight int64) {
	i := slices.IndexFunc(c.prioritizers, func(p prioritizer) bool { return p.Name == name })
	if i < 0 {
		i, c.prioritizers = len(c.prioritizers), append(c.prioritizers, prioritizer{})
	}
	c.prioritizers[i].Prioritizer = Prioritizer{name, weight}
}

// scorer returns one prioritizer's score for a feasible cluster.
type scorer func(c *cluster) int64

// scorer returns the scorer of a prioritizer for the feasible clusters.
func (d *decider) scorer(p prioritizer, feasible []ranked) scorer {
	switch p.Name {
	case clusterv1beta1.PrioritizerSteady:
		return func(c *cluster) int64 {
			if d.isOwn(c) {
				return maxScore
			}
			return 0
		}
	case clusterv1beta1.PrioritizerResourceAllocatableCPU:
		return resourceScorer(feasible, func(c *cluster) amount { return c.cpu })
	case clusterv1beta1.PrioritizerResourceAllocatableMemory:
		return resourceScorer(feasible, func(c *cluster) amount { return c.memory })
	case clusterv1beta1.PrioritizerBalance:
		return d.balanceScorer()
	default:
		return d.addOnScorer(p)
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
func resourceScorer(feasible []ranked, of func(*cluster) amount) scorer {
	low, high := math.Inf(1), math.Inf(-1)
	for _, f := range feasible {
		if has := of(f.cluster); has.known {
			low, high = min(low, has.value), max(high, has.value)
		}
	}
	return func(c *cluster) int64 {
		has := of(c)
		switch {
		case !has.known:
			return 0
		case low == high:
			return maxScore
		}
		return int64(((has.value-low)/(high-low) - 0.5) * 2 * maxScore)
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
		if until := score.Status.ValidUntil; until != nil && !d.recheckAt(until.Time) {
			d.expiries = append(d.expiries, c.name+"/"+p.resource)
			return 0
		}
		for _, item := range score.Status.Scores {
			if item.Name == p.score {
				return min(max(int64(item.Value), minScore), maxScore)
			}
		}
		return 0
	}
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
