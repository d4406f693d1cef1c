// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"time"

	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
)

// Status is the progress of the change on a cluster.
type Status string

// The statuses that a caller can report for a cluster.
const (
	// ToApply: the cluster does not have the change yet.
	ToApply Status = "ToApply"
	// Progressing: the cluster has the change and is not done. A cluster that has the
	// change but reports nothing yet is Progressing too; otherwise it could never time
	// out.
	Progressing Status = "Progressing"
	// Succeeded: the change is done.
	Succeeded Status = "Succeeded"
	// Failed: the change is reported as failed; it may still succeed before the deadline.
	Failed Status = "Failed"
	// Skip: the cluster takes no part and blocks no other.
	Skip Status = "Skip"
)

// Cluster is the state of one cluster. Clusters that a caller omits are ToApply.
type Cluster struct {
	// Name of the cluster.
	Name string
	// Status is the status of the change there; an unknown one counts as Progressing.
	Status Status
	// Since is when it entered that status; zero means now.
	Since time.Time
}

// Plan is what to do now. Every cluster of the placement is in exactly one of the lists
// except Removed. All lists are sorted.
type Plan struct {
	// Start may be given the change now.
	Start []string
	// InFlight have the change and count towards the concurrency until they are done.
	InFlight []string
	// Waiting must not be changed yet.
	Waiting []string
	// Done have the change.
	Done []string
	// TimedOut had the change for longer than the deadline.
	TimedOut []string
	// Skipped take no part.
	Skipped []string
	// Removed have a state and are no longer in any decision group.
	Removed []string
	// Breach is true if more clusters failed or timed out than is tolerated: no further
	// cluster starts until that changes.
	Breach bool
	// Recheck is the time after which the Plan may change by time alone; zero means
	// never.
	Recheck time.Duration
}

// Plan returns the plan for the time now.
func (s Strategy) Plan(groups []Group, clusters []Cluster, now time.Time) Plan {
	p := &planner{Strategy: s, now: now, states: map[string]Cluster{}, members: map[string]bool{}}
	for _, c := range clusters {
		p.states[c.Name] = c
	}
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b Group) int { return a.Index - b.Index })
	for i := range sorted {
		// A cluster belongs to the first group that names it.
		var own []string
		for _, name := range sorted[i].Clusters {
			if !p.members[name] {
				p.members[name] = true
				own = append(own, name)
			}
		}
		slices.Sort(own)
		sorted[i].Clusters = own
	}
	p.run(sorted)
	for _, name := range slices.Sorted(maps.Keys(p.states)) {
		if !p.members[name] {
			p.plan.Removed = append(p.plan.Removed, name)
		}
	}
	for _, list := range []*[]string{&p.plan.Start, &p.plan.InFlight, &p.plan.Waiting, &p.plan.Done, &p.plan.TimedOut, &p.plan.Skipped} {
		slices.Sort(*list)
	}
	return p.plan
}

// planner computes one plan.
type planner struct {
	Strategy
	now     time.Time
	states  map[string]Cluster
	members map[string]bool
	plan    Plan
}

// phase is the state of the clusters of one step of a rollout.
type phase struct {
	waiting []string
	// running count towards the concurrency; failing are those of them that are Failed.
	running, failing, timedOut int
}

// failures returns how many count against maxFailures.
func (p phase) failures() int { return p.failing + p.timedOut }

// finished reports whether nothing but tolerated failures is left of the phase.
func (p phase) finished(tolerated int) bool {
	return len(p.waiting) == 0 && p.running == p.failing && p.failures() <= tolerated
}

// run processes the phases of the strategy. Clusters that are in flight in a phase whose
// turn has not come stay in flight; only starts are held back.
func (p *planner) run(groups []Group) {
	mandatory, rest := split(groups, p.mandatory)
	open := true
	for _, g := range mandatory {
		open = p.step(open, g.Clusters, len(g.Clusters), 0)
	}
	switch p.kind {
	case clusterv1alpha1.RolloutTypeProgressivePerGroup:
		for _, g := range rest {
			n := len(g.Clusters)
			open = p.step(open, g.Clusters, n, sizeOf(p.failures, n))
		}
	case clusterv1alpha1.RolloutTypeProgressive:
		all := flatten(rest)
		p.step(open, all, cmp.Or(sizeOf(p.concurrency, len(all)), len(all)), sizeOf(p.failures, len(all)))
	default:
		all := flatten(rest)
		p.step(open, all, len(all), len(all))
	}
}

// flatten returns the clusters of all groups by name.
func flatten(groups []Group) []string {
	var all []string
	for _, g := range groups {
		all = append(all, g.Clusters...)
	}
	slices.Sort(all)
	return all
}

// step sorts the clusters of one phase into the plan. If the phase is open, it starts as
// many as batch allows, unless more failed than is tolerated. It returns whether the next
// phase is open.
func (p *planner) step(open bool, names []string, batch, tolerated int) bool {
	ph := p.sort(names)
	start := 0
	breach := ph.failures() > tolerated
	p.plan.Breach = p.plan.Breach || (open && breach)
	if open && !breach {
		start = min(max(batch-ph.running, 0), len(ph.waiting))
	}
	p.plan.Start = append(p.plan.Start, ph.waiting[:start]...)
	p.plan.Waiting = append(p.plan.Waiting, ph.waiting[start:]...)
	return open && ph.finished(tolerated)
}

// sort puts every cluster except the waiting ones into its list of the plan.
func (p *planner) sort(names []string) phase {
	var ph phase
	for _, name := range names {
		c, known := p.states[name]
		if c.Name = name; !known {
			c.Status = ToApply
		}
		if c.Since.IsZero() || c.Since.After(p.now) {
			c.Since = p.now
		}
		switch c.Status {
		case ToApply:
			ph.waiting = append(ph.waiting, name)
		case Skip:
			p.plan.Skipped = append(p.plan.Skipped, name)
		case Succeeded:
			if p.soak > 0 && p.recheckAt(c.Since.Add(p.soak)) {
				ph.running++
				p.plan.InFlight = append(p.plan.InFlight, name)
				continue
			}
			p.plan.Done = append(p.plan.Done, name)
		default:
			p.unfinished(c, &ph)
		}
	}
	return ph
}

// unfinished sorts a cluster that has the change and is not done. A forgiven cluster
// counts nowhere in its phase.
func (p *planner) unfinished(c Cluster, ph *phase) {
	if end := c.Since.Add(p.deadline); p.deadline >= 0 && !p.recheckAt(end) {
		if end.After(p.resumed) {
			ph.timedOut++
		}
		p.plan.TimedOut = append(p.plan.TimedOut, c.Name)
		return
	}
	p.plan.InFlight = append(p.plan.InFlight, c.Name)
	if c.Status != Failed {
		ph.running++
	} else if c.Since.After(p.resumed) {
		ph.running++
		ph.failing++
	}
}

// recheckAt reports whether moment is still to come, and if so makes the plan due for a
// recheck then.
func (p *planner) recheckAt(moment time.Time) bool {
	wait := moment.Sub(p.now)
	if wait <= 0 {
		return false
	}
	if p.plan.Recheck == 0 || wait < p.plan.Recheck {
		p.plan.Recheck = wait
	}
	return true
}
