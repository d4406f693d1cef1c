// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Kind of a Step.
type Kind string

// Kinds of steps, as metrics name them.
const (
	// KindFilter: Predicate and TaintToleration, over all candidates.
	KindFilter Kind = "filter"
	// KindPrioritizer: one prioritizer, over all feasible clusters.
	KindPrioritizer Kind = "prioritizer"
	// KindCEL: the expressions of one predicate for one cluster.
	KindCEL Kind = "cel"
)

// Step is a part of a decision. There is a bounded number of them.
type Step struct {
	Kind Kind
	// Name of the filter or prioritizer; prioritizers of add-ons share the name
	// AddOn, and expressions have none.
	Name string
}

// Stopwatch measures how long steps take. Both functions are called while a
// decision is made, and must be quick.
type Stopwatch struct {
	// Now tells the time.
	Now func() time.Time
	// Took is told how long a step took.
	Took func(Step, time.Duration)
}

// Measure has every step of all decisions measured from now on. It makes no
// difference to what is decided.
func (s *Scheduler) Measure(w Stopwatch) { s.stopwatch = w }

// begin is when a step begins; zero where nobody measures.
func (s *Scheduler) begin() time.Time {
	if s.stopwatch.Took == nil {
		return time.Time{}
	}
	return s.stopwatch.Now()
}

// took tells how long a step took.
func (s *Scheduler) took(step Step, from time.Time) {
	if s.stopwatch.Took != nil {
		s.stopwatch.Took(step, s.stopwatch.Now().Sub(from))
	}
}
