// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// unableAfter is how many failures in a row are no longer seen as temporary.
const unableAfter = 3

// claim records which objects the work declares and cannot write: its executor lacks the
// rights, or the manifest is refused again and again. An object that the work wrote
// before stays claimed.
func (p *pass) claim() {
	able := map[ledger.Object]bool{}
	for i := range p.plan.Tasks {
		o := objectOf(p.state.Manifests[i].Head)
		able[o] = able[o] || p.plan.Tasks[i].canWrite(p)
	}
	var unable []ledger.Object
	for o, can := range able {
		if !can {
			unable = append(unable, o)
		}
	}
	p.c.Works.Claims.Unable(p.work.Name, unable)
}

// objectOf names what a manifest declares, for claims.
func objectOf(head workv1.ManifestResourceMeta) ledger.Object {
	return ledger.Object{Group: head.Group, Kind: head.Kind, Namespace: head.Namespace, Name: head.Name}
}

// canWrite reports whether the object was written, or may be.
func (t *Task) canWrite(p *pass) bool {
	switch {
	case !t.Phase.names():
		return false
	case t.Result.Seen.OwnedBy(p.applied.UID):
		return true
	}
	return t.Phase != denied && t.Refusal == nil && t.Fails < unableAfter
}

// marked reports whether the object carries the owner reference of the work, or will with
// an event that is still to come. An existing object without it may never get it, for
// example where others hold its fields, and the watch may have dropped it.
func (t *Task) marked(there bool, work types.UID) bool {
	return t.Action.writes() && t.Options.Owned && writesOwner(t.Options) && (!there || t.Result.Seen.OwnedBy(work))
}

func writesOwner(o apply.Options) bool { return o.Strategy != workv1.UpdateStrategyTypeReadOnly }
