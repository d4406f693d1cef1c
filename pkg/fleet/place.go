// SPDX-License-Identifier: Apache-2.0

package fleet

// Place is one of the clusters on which an operation waits at the same time.
type Place struct {
	r    *Run
	name string
	// last is what was seen there last; empty when there was nothing to wait for.
	last string
}

// Place begins a wait on one cluster of many.
func (r *Run) Place(name string) *Place { return &Place{r: r, name: name} }

// See tells what the wait on the cluster is for, where that changed.
func (p *Place) See(detail string) {
	if detail != p.last {
		p.last = detail
		p.tell(Running, detail)
	}
}

// End tells how a wait that took a while ended, and passes err on.
func (p *Place) End(err error, reached string) error {
	switch {
	case p.last == "":
	case err == nil:
		p.tell(Done, reached)
	default:
		p.tell(Broken, p.last)
	}
	return err
}

// tell is for many clusters at a time: whoever listens hears one after the other.
func (p *Place) tell(state StepState, detail string) {
	if p.r.Given.Progress == nil {
		return
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.Given.Progress(Step{Name: p.name, State: state, Detail: detail, Elapsed: p.r.Given.Clock.Since(p.r.Start)})
}
