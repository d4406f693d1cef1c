// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Kind is the kind of a Step.
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

// Step is a part of a decision. The number of different steps is bounded.
type Step struct {
	Kind Kind
	// Name is the name of the filter or prioritizer; prioritizers of add-ons share the
	// name AddOn, and expressions have none.
	Name string
}

// Stopwatch measures how long steps take. Both functions are called during a decision,
// and must be fast.
type Stopwatch struct {
	// Now returns the time.
	Now func() time.Time
	// Took is called with the duration of a step.
	Took func(Step, time.Duration)
}

// Measure makes the Scheduler measure every step of all decisions from now on. It does
// not affect decisions.
func (s *Scheduler) Measure(w Stopwatch) { s.stopwatch = w }

// begin returns when a step begins; zero if nothing is measured.
func (s *Scheduler) begin() time.Time {
	if s.stopwatch.Took == nil {
		return time.Time{}
	}
	return s.stopwatch.Now()
}

// took reports how long a step took.
func (s *Scheduler) took(step Step, from time.Time) {
	if s.stopwatch.Took != nil {
		s.stopwatch.Took(step, s.stopwatch.Now().Sub(from))
	}
}
