// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// place is one of the clusters on which an operation waits at the same time.
type place struct {
	r    *run
	name string
	// last is what was seen there last; empty when there was nothing to wait for.
	last string
}

// place begins a wait on one cluster of many.
func (r *run) place(name string) *place { return &place{r: r, name: name} }

// see tells what the wait on the cluster is for, where that changed.
func (p *place) see(detail string) {
	if detail != p.last {
		p.last = detail
		p.tell(Running, detail)
	}
}

// end tells how a wait that took a while ended, and passes err on.
func (p *place) end(err error, reached string) error {
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
func (p *place) tell(state StepState, detail string) {
	if p.r.common.Progress == nil {
		return
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.common.Progress(Step{Name: p.name, State: state, Detail: detail, Elapsed: p.r.common.Clock.Since(p.r.start)})
}

// workSight is what is seen of a work, nil for none, whose condition kind is not True.
func workSight(u *unstructured.Unstructured, kind string) string {
	switch {
	case u == nil:
		return "there is no such work yet"
	case u.GetDeletionTimestamp() != nil:
		return "its agent removes the objects"
	case !observed(u, workv1.ConditionApplied):
		return "the agent has not answered"
	}
	if b := workBlocker(u); b != nil {
		return b.cause
	}
	return kind + " is not True"
}
