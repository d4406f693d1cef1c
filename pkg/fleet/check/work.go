// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// maxWorks bounds the works of one cluster that are reported one by one, for each code.
const maxWorks = 5

// works reports the works of a cluster that fail or whose deletion hangs, with the object and
// the cause. A cluster that is away has its own finding.
func (c *checking) works(ctx context.Context, info cluster.Info, mc *clusterv1.ManagedCluster, all *fleetState) []Finding {
	if info.Status != cluster.Available && info.Status != cluster.Deleting {
		return nil
	}
	var out []Finding
	left, told := 0, map[string]int{}
	for i := range all.Works[info.Name] {
		u := &all.Works[info.Name][i]
		f := c.work(u, info.Status, mc)
		if u.GetDeletionTimestamp() != nil {
			f = c.goingWork(ctx, u, all)
		}
		switch {
		case f.Code == "" || c.isTold(ctx, u):
		case told[f.Code] == maxWorks:
			left++
		default:
			told[f.Code]++
			out = append(out, f)
		}
	}
	if left > 0 {
		out = append(out, warning(CodeClusterWorks, fleet.Many(left, "more work")+" of it are unhealthy", "",
			fleet.ShowWorks.On(c.o.Hub, "work", "", "cluster", info.Name)))
	}
	return out
}

// namedWorks checks the works of the options, each in an area of its own: two requests for each, and
// one more for a work that is being deleted.
func (c *checking) namedWorks(ctx context.Context) []Area {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	out := make([]Area, len(c.o.Works))
	var group errgroup.Group
	group.SetLimit(worksParallel)
	for i, key := range c.o.Works {
		out[i].Name = "work " + key.String()
		group.Go(func() error {
			found, err := c.namedWork(ctx, key)
			if err != nil {
				found = append(found, unreadable(CodeClusterWorks, err))
			}
			out[i].Findings = found
			return nil
		})
	}
	_ = group.Wait()
	return out
}

// worksParallel bounds the works that are read at the same time.
const worksParallel = 8

// namedWork judges one work; the namespace of the key is its cluster.
func (c *checking) namedWork(ctx context.Context, key types.NamespacedName) ([]Finding, error) {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, c.o.Hub.Client, fleet.ManagedClusters, "", key.Namespace)
	if apierrors.IsNotFound(err) {
		return []Finding{failure(CodeClusterJoining, fmt.Sprintf("there is no managed cluster %q", key.Namespace), "", naming.ListClusters.On(c.o.Hub))}, nil
	}
	if err != nil {
		return nil, fleet.Explain("reading managedcluster "+key.Namespace, c.o.Hub, err)
	}
	u, err := c.o.Hub.Client.Resource(fleet.ManifestWorks).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return []Finding{failure(CodeClusterWorks, fmt.Sprintf("there is no work %q on %s", key.Name, key.Namespace), "",
			fleet.ShowWorks.On(c.o.Hub, "work", "", "cluster", key.Namespace))}, nil
	}
	if err != nil {
		return nil, fleet.Explain("reading work "+key.String(), c.o.Hub, err)
	}
	w, err := work.InfoOf(u)
	if err != nil {
		return nil, err
	}
	var out []Finding
	if !cluster.Alive(mc) {
		out = append(out, warning(CodeClusterWorks, "its cluster is not available: nothing new reaches it, and its last report may be old",
			cluster.ConditionText(mc.Status.Conditions, clusterv1.ConditionAvailable), CheckCluster.On(c.o.Hub, "cluster", key.Namespace)))
	}
	f := c.work(u, cluster.Available, mc)
	if u.GetDeletionTimestamp() != nil {
		f = c.goingWork(ctx, u, &fleetState{going: work.Departures{Hub: c.o.Hub}})
	}
	switch {
	case f.Code != "":
		out = append(out, f)
	case out != nil:
	case u.GetDeletionTimestamp() != nil:
		out = good(CodeClusterWorks, "it is being deleted")
	case w.State == work.Pending:
		out = good(CodeClusterWorks, "it is on its way to its agent")
	default:
		out = good(CodeClusterWorks, "%d of %d objects are applied and available, %s", w.Objects.Good, w.Objects.Total, w.State)
	}
	return out, nil
}

// work returns what is wrong with one work; a zero finding for nothing. What has no status yet may still
// be on its way.
func (c *checking) work(u *unstructured.Unstructured, state string, mc *clusterv1.ManagedCluster) Finding {
	w, err := work.InfoOf(u)
	if err != nil {
		return Finding{}
	}
	f := warning(CodeClusterWorks, "", w.Message, ShowTree.On(c.o.Hub, "work", w.Name, "cluster", w.Cluster))
	switch {
	case state != cluster.Available:
		return Finding{}
	case w.State == work.ApplyFailed:
		if full, err := typed.FromUnstructured[workv1.ManifestWork](u); err == nil {
			if known, ok := c.faultOf(&brokenWork{Info: &w, work: full, context: c.contextOf(mc)}); ok {
				return known
			}
		}
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
