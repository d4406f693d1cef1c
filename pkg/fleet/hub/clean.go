// SPDX-License-Identifier: Apache-2.0

package hub

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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// CleanOptions say which hub to remove.
type CleanOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Force removes it even if clusters are attached, and without waiting for agents that are
	// away. What works applied stays on the clusters.
	Force bool
	// Confirm is called before the first write and may return an error; nil skips it.
	Confirm func(CleanPlan) error
}

// CleanPlan is what Clean would remove, for the user to confirm.
type CleanPlan struct {
	// Hub names the hub.
	Hub string
	// Clusters are the attached clusters.
	Clusters []string
	// Works is the number of their works.
	Works int
	// KeepsAPIs is true when clusters, works and all else of users stay.
	KeepsAPIs bool
}

// CleanResult is what was removed.
type CleanResult struct {
	// Action is deleted, or unchanged when there was no hub.
	Action fleet.Action `json:"action"`
	// Leftovers are objects that could not be removed.
	Leftovers []string `json:"leftovers"`
	// Kept are the namespaces that clusters had. They stay, because they may hold objects of
	// users.
	Kept []string `json:"kept"`
	// KeptAPIs are the definitions that stay with all their objects, because the hub is or was set to
	// keep its APIs. A later hub takes them over.
	KeptAPIs []string `json:"keptAPIs,omitempty"`
	// Stays is what works applied, by cluster; it is no longer managed.
	Stays []teardown.KeptCluster `json:"stays"`
	// Items are the objects that were there.
	Items []fleet.Change `json:"items"`
}

// hubLabel selects everything that a hub consists of.
const hubLabel = operatorv1.LabelCreatedByClusterManager + "=" + operatorv1.DefaultClusterManagerName

// Clean removes a hub with everything that was installed or created for it. It refuses while a
// cluster is attached. It can be repeated after any failure.
func Clean(ctx context.Context, o CleanOptions) (CleanResult, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	result := CleanResult{Action: fleet.Unchanged, Leftovers: []string{}, Kept: []string{}, Stays: []teardown.KeptCluster{}}
	if _, err := fleet.ServerVersion(ctx, o.Hub); err != nil {
		return result, err
	}
	for _, refused := range []func(context.Context, *fleet.Cluster) error{refuseHosted, refuseHosting} {
		if err := refused(ctx, o.Hub); err != nil {
			return result, err
		}
	}
	items, err := inventory(ctx, o.Hub)
	if err != nil {
		return result, err
	}
	if result.Kept, err = clusterNamespaces(ctx, o.Hub); err != nil {
		return result, err
	}
	keep, err := o.kept(ctx, &result, items)
	if err != nil || len(items) == 0 {
		return result, err
	}
	items = slices.DeleteFunc(items, func(c fleet.Change) bool { return slices.Contains(result.KeptAPIs, c.Object.GetName()) })
	plan, err := o.plan(ctx)
	plan.KeepsAPIs = keep
	if err != nil {
		return result, err
	}
	if len(plan.Clusters) > 0 && !o.Force {
		return result, fleet.Refuse(fmt.Sprintf("%s attached to the hub of %s", fleet.AreMany(len(plan.Clusters), "cluster"), o.Hub),
			strings.Join(plan.Clusters, ", "),
			UnjoinFirst.With("cluster", plan.Clusters[0], "hub", o.Hub.Context))
	}
	result.Action, result.Items = fleet.Deleted, items
	if o.Reads() {
		return result, nil
	}
	if o.Confirm != nil {
		if err := o.Confirm(plan); err != nil {
			return CleanResult{Action: fleet.Unchanged, Leftovers: []string{}, Kept: result.Kept, KeptAPIs: result.KeptAPIs, Stays: result.Stays}, err
		}
	}
	result.Stays, err = o.remove(ctx, r, keep)
	if err != nil {
		return result, r.Fail(err)
	}
	return result, o.verify(ctx, r, &result)
}

// kept finds out whether the APIs stay, and which: a hub whose process has ended has marked them, one
// that has just started may not have.
func (o *CleanOptions) kept(ctx context.Context, result *CleanResult, items []fleet.Change) (bool, error) {
	d, err := Deployment(ctx, o.Hub)
	if err != nil {
		return false, err
	}
	if result.KeptAPIs, err = teardown.KeptAPIs(ctx, o.Hub.Client); err != nil {
		return false, fleet.Explain("looking for APIs that are kept", o.Hub, err)
	}
	if !KeepsAPIs(d) {
		return len(result.KeptAPIs) > 0, nil
	}
	for _, c := range items {
		name := c.Object.GetName()
		if c.Object.GetKind() == "CustomResourceDefinition" && !strings.HasSuffix(name, "."+operatorv1.GroupName) && !slices.Contains(result.KeptAPIs, name) {
			result.KeptAPIs = append(result.KeptAPIs, name)
		}
	}
	return true, nil
}

// inventory lists the objects with the hub's label.
func inventory(ctx context.Context, c *fleet.Cluster) ([]fleet.Change, error) {
	var out []fleet.Change
	for _, resource := range append([]schema.GroupVersionResource{fleet.ClusterManagers}, fleet.InventoryKinds...) {
		q := fleet.Query{Resource: resource, Labels: hubLabel}
		items, err := fleet.ListAll(ctx, c, q)
		if err != nil {
			return nil, fleet.Explain("looking for the hub on "+c.String(), c, err)
		}
		for i := range items {
			out = append(out, fleet.Change{Object: fleet.Reference(&items[i]), Action: fleet.Deleted})
		}
	}
	return out, nil
}

// clusterNamespaces returns the namespaces that were created for clusters, by their label.
func clusterNamespaces(ctx context.Context, c *fleet.Cluster) ([]string, error) {
	items, err := fleet.ListAll(ctx, c, fleet.Query{Resource: fleet.Namespaces, Labels: clusterv1.LabelClusterName})
	if err != nil {
		return nil, fleet.Explain("listing the namespaces of clusters", c, err)
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
	clusters, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManagedClusters})
	if err != nil {
		return p, fleet.Explain("listing managedclusters", o.Hub, err)
	}
	for i := range clusters {
		p.Clusters = append(p.Clusters, clusters[i].GetName())
	}
	slices.Sort(p.Clusters)
	works, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManifestWorks})
	if err != nil {
		return p, fleet.Explain("listing manifestworks", o.Hub, err)
	}
	p.Works = len(works)
	return p, nil
}

// remove removes the hub and then sweeps up by label. It returns what stays on the clusters.
func (o *CleanOptions) remove(ctx context.Context, r *fleet.Run, keep bool) ([]teardown.KeptCluster, error) {
	r.Step("hub removed")
	stays, err := teardown.Hub(ctx, o.Hub.Client, teardown.HubOptions{Force: o.Force, KeepAPIs: keep, Progress: r.Detail, Clock: r.Given.Clock})
	if err == nil {
		err = o.sweep(ctx)
	}
	switch {
	case err == nil:
		r.Done("")
		return stays, nil
	case errors.Is(err, teardown.ErrNotKept):
		return stays, o.notKept(err)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, teardown.ErrHubBusy):
		return stays, &fleet.Error{Kind: fleet.Timeout, Message: fmt.Sprintf("timed out after %s removing the hub of %s", r.Given.Timeout, o.Hub),
			Cause: fleet.OneLine(err.Error()),
			Fix:   fleet.Advice("run the same command again; it continues where it stopped"), Err: err}
	}
	return stays, fleet.Explain("removing the hub of "+o.Hub.String(), o.Hub, err)
}

// notKept is the error for agents that are alive and do not confirm that they leave what works
// applied.
func (o *CleanOptions) notKept(err error) error {
	e := fleet.Refuse("agents are alive and do not confirm that they leave what works applied; no work was deleted", fleet.OneLine(err.Error()),
		fleet.MendWorks.On(o.Hub, "cluster", ""))
	e.Err = err
	return e
}

// sweep deletes what still has the label: tokens, cluster-info. An object that is already
// being deleted, and so conflicts, is left to verify.
func (o *CleanOptions) sweep(ctx context.Context) error {
	left, err := inventory(ctx, o.Hub)
	if err != nil {
		return err
	}
	for _, c := range left {
		client := o.Hub.Client.Resource(fleet.ResourceOf(c.Object)).Namespace(c.Object.GetNamespace())
		if err := client.Delete(ctx, c.Object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting %s: %w", fleet.Describe(c.Object), err)
		}
	}
	return nil
}

// verify waits until nothing is left, or returns an error that names what is.
func (o *CleanOptions) verify(ctx context.Context, r *fleet.Run, result *CleanResult) error {
	r.Step("nothing of it is left")
	for {
		left, err := fleet.Leftovers(ctx, o.Hub, hubLabel)
		if err != nil {
			return r.Fail(err)
		}
		if len(left) == 0 {
			r.Done("")
			return nil
		}
		r.Detail(left[0])
		select {
		case <-ctx.Done():
			result.Leftovers = left
			if errors.Is(ctx.Err(), context.Canceled) {
				return r.Fail(ctx.Err())
			}
			return r.Fail(&fleet.Error{Kind: fleet.Timeout,
				Message: fmt.Sprintf("timed out after %s: %s left on %s", r.Given.Timeout, fleet.AreMany(len(left), "object"), o.Hub),
				Cause:   strings.Join(left, ", "), Fix: fleet.Advice("run the same command again")})
		case <-r.Given.Clock.After(write.ServedPause):
		}
	}
}
