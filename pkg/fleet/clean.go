// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
)

// CleanOptions say which hub to remove.
type CleanOptions struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Force removes it although clusters are attached, and without the agents
	// that are away. What works applied stays on the clusters.
	Force bool
	// Confirm is asked before the first write; nil does not ask.
	Confirm func(CleanPlan) error
}

// CleanPlan is what a clean would remove, for a person to confirm.
type CleanPlan struct {
	// Hub names the hub.
	Hub string
	// Clusters are those that are attached.
	Clusters []string
	// Works is the number of their works.
	Works int
}

// CleanResult is what was removed.
type CleanResult struct {
	// Action is deleted, or unchanged when there was no hub.
	Action Action `json:"action"`
	// Leftovers are objects that could not be removed.
	Leftovers []string `json:"leftovers"`
	// Kept are the namespaces that clusters had. They stay, because people may
	// have put things there.
	Kept []string `json:"kept"`
	// Stays is what works applied, by cluster; nobody manages it any more.
	Stays []teardown.KeptCluster `json:"stays"`
	// Items are the objects that were there.
	Items []Change `json:"items"`
}

// hubLabel is on everything that a hub consists of.
const hubLabel = operatorv1.LabelCreatedByClusterManager + "=" + operatorv1.DefaultClusterManagerName

// Clean removes a hub with everything that was installed or made for it. It
// refuses while a cluster is attached. It can be repeated after any failure.
func Clean(ctx context.Context, o CleanOptions) (CleanResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	result := CleanResult{Action: Unchanged, Leftovers: []string{}, Kept: []string{}, Stays: []teardown.KeptCluster{}}
	if _, err := serverVersion(ctx, o.Hub); err != nil {
		return result, err
	}
	items, err := inventory(ctx, o.Hub)
	if err != nil {
		return result, err
	}
	if result.Kept, err = clusterNamespaces(ctx, o.Hub); err != nil {
		return result, err
	}
	if len(items) == 0 {
		return result, nil
	}
	plan, err := o.plan(ctx)
	if err != nil {
		return result, err
	}
	if len(plan.Clusters) > 0 && !o.Force {
		return result, refused(fmt.Sprintf("%s attached to the hub of %s", areMany(len(plan.Clusters), "cluster"), o.Hub), strings.Join(plan.Clusters, ", "),
			fmt.Sprintf("kubectl ocm unjoin %s --context <its context> --hub-context %s      or add --force", plan.Clusters[0], ShellWord(o.Hub.Context)))
	}
	result.Action, result.Items = Deleted, items
	if o.reads() {
		return result, nil
	}
	if o.Confirm != nil {
		if err := o.Confirm(plan); err != nil {
			return CleanResult{Action: Unchanged, Leftovers: []string{}, Kept: result.Kept, Stays: result.Stays}, err
		}
	}
	result.Stays, err = o.remove(ctx, r)
	if err != nil {
		return result, r.fail(err)
	}
	return result, o.verify(ctx, r, &result)
}

// inventory lists what carries the hub's label.
func inventory(ctx context.Context, c *Cluster) ([]Change, error) {
	var out []Change
	for _, resource := range append([]schema.GroupVersionResource{clusterManagers}, inventoryKinds...) {
		q := query{resource: resource, labels: hubLabel}
		items, err := listAll(ctx, c, q)
		if err != nil {
			return nil, explain("looking for the hub on "+c.String(), c, err)
		}
		for i := range items {
			out = append(out, Change{Object: reference(&items[i]), Action: Deleted})
		}
	}
	return out, nil
}

// clusterNamespaces names the namespaces that were made for clusters, by their
// label (registration.md 4.2).
func clusterNamespaces(ctx context.Context, c *Cluster) ([]string, error) {
	items, err := listAll(ctx, c, query{resource: namespaces, labels: clusterv1.LabelClusterName})
	if err != nil {
		return nil, explain("listing the namespaces of clusters", c, err)
	}
	out := []string{}
	for i := range items {
		if ns := &items[i]; ns.GetLabels()[clusterv1.LabelClusterName] == ns.GetName() && ns.GetDeletionTimestamp() == nil {
			out = append(out, ns.GetName())
		}
	}
	slices.Sort(out)
	return out, nil
}

func (o *CleanOptions) plan(ctx context.Context) (CleanPlan, error) {
	p := CleanPlan{Hub: o.Hub.String()}
	clusters, err := listAll(ctx, o.Hub, query{resource: managedClusters})
	if err != nil {
		return p, explain("listing managedclusters", o.Hub, err)
	}
	for i := range clusters {
		p.Clusters = append(p.Clusters, clusters[i].GetName())
	}
	slices.Sort(p.Clusters)
	works, err := listAll(ctx, o.Hub, query{resource: manifestWorks})
	if err != nil {
		return p, explain("listing manifestworks", o.Hub, err)
	}
	p.Works = len(works)
	return p, nil
}

// remove does the removal and then sweeps up by label. It returns what stays on
// the clusters.
func (o *CleanOptions) remove(ctx context.Context, r *run) ([]teardown.KeptCluster, error) {
	r.step("hub removed")
	stays, err := teardown.Hub(ctx, o.Hub.Client, teardown.HubOptions{Force: o.Force, Progress: r.detail, Clock: r.common.Clock})
	if err == nil {
		err = o.sweep(ctx)
	}
	switch {
	case err == nil:
		r.done("")
		return stays, nil
	case errors.Is(err, teardown.ErrNotKept):
		return stays, o.notKept(err)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, teardown.ErrHubBusy):
		return stays, &Error{Kind: Timeout, Message: fmt.Sprintf("timed out after %s removing the hub of %s", r.common.Timeout, o.Hub), Cause: oneLine(err.Error()),
			Fix: "run the same command again; it continues where it stopped", Err: err}
	}
	return stays, explain("removing the hub of "+o.Hub.String(), o.Hub, err)
}

// notKept is the error for agents that are alive and do not confirm that they
// leave what works applied.
func (o *CleanOptions) notKept(err error) error {
	e := refused("agents are alive and do not confirm that they leave what works applied; no work was deleted", oneLine(err.Error()),
		"mend or delete the works that cannot be applied: kubectl ocm work list -A"+o.Hub.flag()+"      then run the same command again")
	e.Err = err
	return e
}

// sweep deletes what still carries the label: tokens, cluster-info. What is
// going already, and so conflicts, is waited for by verify.
func (o *CleanOptions) sweep(ctx context.Context) error {
	left, err := inventory(ctx, o.Hub)
	if err != nil {
		return err
	}
	for _, c := range left {
		client := o.Hub.Client.Resource(resourceOf(c.Object)).Namespace(c.Object.GetNamespace())
		if err := client.Delete(ctx, c.Object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting %s: %w", describe(c.Object), err)
		}
	}
	return nil
}

// verify waits until nothing is left and names what is.
func (o *CleanOptions) verify(ctx context.Context, r *run, result *CleanResult) error {
	r.step("nothing of it is left")
	for {
		left, err := leftovers(ctx, o.Hub, hubLabel)
		if err != nil {
			return r.fail(err)
		}
		if len(left) == 0 {
			r.done("")
			return nil
		}
		r.detail(left[0])
		select {
		case <-ctx.Done():
			result.Leftovers = left
			if errors.Is(ctx.Err(), context.Canceled) {
				return r.fail(ctx.Err())
			}
			return r.fail(&Error{Kind: Timeout, Message: fmt.Sprintf("timed out after %s: %s left on %s", r.common.Timeout, areMany(len(left), "object"), o.Hub),
				Cause: strings.Join(left, ", "), Fix: "run the same command again"})
		case <-r.common.Clock.After(servedPause):
		}
	}
}
