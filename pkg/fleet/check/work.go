// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
)

// maxWorks bounds the works of one cluster that are reported one by one.
const maxWorks = 5

// works reports the works of a cluster that fail or whose deletion hangs, with the object and
// the cause. A cluster that is away has its own finding.
func (c *checking) works(ctx context.Context, info cluster.Info, all *fleetState) []Finding {
	if info.Status != cluster.Available && info.Status != cluster.Deleting {
		return nil
	}
	var out []Finding
	left := 0
	for i := range all.Works[info.Name] {
		u := &all.Works[info.Name][i]
		w, err := work.InfoOf(u)
		if err != nil {
			continue
		}
		f := c.work(&w, info.Status)
		if w.State == work.Deleting {
			f = c.goingWork(ctx, u, all)
		}
		switch {
		case f.Code == "":
		case len(out) == maxWorks:
			left++
		default:
			out = append(out, f)
		}
	}
	if left > 0 {
		out = append(out, warning(CodeClusterWorks, fleet.Many(left, "more work")+" of it are unhealthy", "",
			fleet.ShowWorks.On(c.o.Hub, "work", "", "cluster", info.Name)))
	}
	return out
}

// work returns what is wrong with one work; a zero finding for nothing. What has no status yet may still
// be on its way.
func (c *checking) work(w *work.Info, state string) Finding {
	f := warning(CodeClusterWorks, "", w.Message, ShowTree.On(c.o.Hub, "work", w.Name, "cluster", w.Cluster))
	switch {
	case state != cluster.Available:
		return Finding{}
	case w.State == work.ApplyFailed:
		f.Title = fmt.Sprintf("work %s is not applied, %d of %d objects are healthy", w.Name, w.Objects.Good, w.Objects.Total)
	case w.State == work.NotAvailable:
		f.Title = fmt.Sprintf("work %s is not available, %d of %d objects are healthy", w.Name, w.Objects.Good, w.Objects.Total)
	case w.State == work.Pending && c.run.Now().Sub(w.Created.Time) >= stepPatience:
		f.Title = fmt.Sprintf("work %s is not applied: its agent has not answered generation %d", w.Name, w.Generation)
	default:
		return Finding{}
	}
	return f
}

// goingWork reports a work whose deletion hangs, and what holds it up.
func (c *checking) goingWork(ctx context.Context, u *unstructured.Unstructured, all *fleetState) Finding {
	age := c.run.Now().Sub(u.GetDeletionTimestamp().Time)
	b := all.going.Blocker(ctx, u)
	if age < stepPatience || b == nil {
		return Finding{}
	}
	f := warning(CodeClusterWorks, "work "+u.GetName()+" is being deleted for "+duration.HumanDuration(age), b.Cause,
		fleet.ShowWorks.On(c.o.Hub, "work", u.GetName(), "cluster", u.GetNamespace()))
	if force, ok := b.Fix.(fleet.Remedy); ok && force.Code == work.DeleteByForce {
		f.Fix = force
	}
	return f
}
