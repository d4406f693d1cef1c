// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// unrecordable returns why no AppliedManifestWork can represent a work of that name; nil
// for every name that our hub's admission accepts.
func unrecordable(work string, identity ledger.Identity) error {
	most := validation.DNS1123SubdomainMaxLength - len(identity.Name(""))
	if len(work) <= most {
		return nil
	}
	return fmt.Errorf("metadata.name: has %d characters, more than the %d that leave room for the hash of the hub's address; "+
		"create the work again under a shorter name", len(work), most)
}

// refuse reports on each manifest why the work is not applied. Nothing is written to the
// cluster, and the work gets no finalizer: what was never recorded needs no cleanup.
func (c *Controller) refuse(ctx context.Context, work *workv1.ManifestWork, r *record, fault error) error {
	var unable []ledger.Object
	p := &pass{Controller: c, record: r, work: work, state: State{Work: work}}
	for ordinal, m := range work.Spec.Workload.Manifests {
		task := Task{}
		task.moveTo(broken)
		task.Meta = headOf(manifest.Head(m.Raw))
		unable = append(unable, objectOf(task.Meta))
		task.Meta.Ordinal = int32(ordinal) //nolint:gosec // bounded by the size of a work
		task.Outcome = status.Outcome{Applied: status.Failed(fault.Error()), Available: status.Unnamed(), Feedback: status.NoFeedback()}
		p.plan.Tasks = append(p.plan.Tasks, task)
	}
	c.c.Works.Claims.Unable(work.Name, unable)
	return p.report(ctx)
}
