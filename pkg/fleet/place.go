// SPDX-License-Identifier: Apache-2.0

package fleet

// Place is one of several clusters on which an operation waits in parallel.
type Place struct {
	r    *Run
	name string
	// last is the last reported detail; empty when there was nothing to wait for.
	last string
}

// Place starts a wait on one cluster of many.
func (r *Run) Place(name string) *Place { return &Place{r: r, name: name} }

// See reports what the wait on the cluster is for, when that has changed.
func (p *Place) See(detail string) {
	if detail != p.last {
		p.last = detail
		p.report(Running, detail)
	}
}

// End reports how a wait ended if it had reported anything, and returns err.
func (p *Place) End(err error, reached string) error {
	switch {
	case p.last == "":
	case err == nil:
		p.report(Done, reached)
	default:
		p.report(Broken, p.last)
	}
	return err
}

// report reports a step; calls from many clusters never overlap.
func (p *Place) report(state StepState, detail string) {
	if p.r.Given.Progress == nil {
		return
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.Given.Progress(Step{Name: p.name, State: state, Detail: detail, Elapsed: p.r.Given.Clock.Since(p.r.Start)})
}
