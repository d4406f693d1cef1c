// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// unableAfter failures in a row are no passing trouble any more.
const unableAfter = 3

// claim tells which objects the work declares and cannot write: its executor lacks
// the rights, or the manifest is refused time and again. Only an object that it
// wrote before it holds all the same.
func (p *pass) claim() {
	able := map[ledger.Object]bool{}
	for i := range p.plan.Tasks {
		o := objectOf(p.state.Manifests[i])
		able[o] = able[o] || p.plan.Tasks[i].able(p)
	}
	var unable []ledger.Object
	for o, can := range able {
		if !can {
			unable = append(unable, o)
		}
	}
	p.c.Works.Claims.Unable(p.work.Name, unable)
}

// objectOf names what a manifest declares, as claims do.
func objectOf(m Manifest) ledger.Object {
	return ledger.Object{Group: m.Head.Group, Kind: m.Head.Kind, Namespace: m.Head.Namespace, Name: m.Head.Name}
}

// able tells whether the object was written, or may be.
func (t *Task) able(p *pass) bool {
	switch {
	case !t.Stand.names():
		return false
	case t.Result.Seen.OwnedBy(p.applied.UID):
		return true
	}
	return t.Stand != denied && t.Refusal == nil && t.Fails < unableAfter
}

// marked tells whether the object carries the reference of the work, or will by
// an event that is still to come. One that is there without it may never get
// it, as where others hold its fields, and the watch may have dropped it.
func (t *Task) marked(there bool, work types.UID) bool {
	return t.Action.writes() && t.Options.Owned && writesOwner(t.Options) && (!there || t.Result.Seen.OwnedBy(work))
}

func writesOwner(o apply.Options) bool { return o.Strategy != workv1.UpdateStrategyTypeReadOnly }
