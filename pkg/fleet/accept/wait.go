// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"errors"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// AwaitJoined waits until a cluster is joined and available on the hub.
func AwaitJoined(ctx context.Context, r *fleet.Run, hub *fleet.Cluster, name string, find func(context.Context) *fleet.Blocker) error {
	var last *unstructured.Unstructured
	err := await.Objects(ctx, await.Query{Client: hub.Client, Resource: fleet.ManagedClusters, Name: name, Clock: r.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				if last != nil {
					return false, &fleet.Error{Message: "managedcluster/" + name + " was deleted on the hub while it joined",
						Fix: fleet.Advice("run the same command again")}
				}
				return false, nil
			}
			last = items[0]
			if fleet.ConditionTrue(last, clusterv1.ConditionJoined) && fleet.ConditionTrue(last, clusterv1.ConditionAvailable) {
				return true, nil
			}
			r.Detail(joinDetail(last))
			return false, nil
		})
	return r.TimedOut(ctx, err, "managedcluster/"+name+" to be available", func(ctx context.Context) *fleet.Blocker {
		if last != nil {
			for _, kind := range []string{clusterv1.ConditionDuplicateClusterName, clusterv1.ConditionHubAccepted, clusterv1.ConditionAvailable} {
				c := apimeta.FindStatusCondition(fleet.ConditionsOf(last), kind)
				if c != nil && (c.Status == "True") == (kind == clusterv1.ConditionDuplicateClusterName) {
					return fleet.BlockedBy(c, nil)
				}
			}
		}
		return find(ctx)
	})
}

func joinDetail(mc *unstructured.Unstructured) string {
	if fleet.ConditionTrue(mc, clusterv1.ConditionJoined) {
		return "joined, not yet available"
	}
	if fleet.ConditionTrue(mc, clusterv1.ConditionHubAccepted) {
		return "accepted, the agent has not reported yet"
	}
	return "waiting for the hub to accept the agent"
}

// awaitRequests waits until every named cluster has something to accept.
func (o *Options) awaitRequests(ctx context.Context, r *fleet.Run) error {
	for _, name := range o.Clusters {
		r.Step("request of " + name)
		mc, err := typed.Get[clusterv1.ManagedCluster](ctx, o.Hub.Client, fleet.ManagedClusters, "", name)
		if err == nil && cluster.Certified(mc, r.Now()) {
			r.Done("it has a certificate already")
			continue
		}
		q := await.Query{Client: o.Hub.Client, Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName + "=" + name + ",!" +
			clusterv1.LabelAddOnName, Clock: r.Given.Clock}
		err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
			return slices.ContainsFunc(items, func(u *unstructured.Unstructured) bool { return request.StateOf(u) == request.StatePending }), nil
		})
		if err != nil {
			return r.Fail(r.TimedOut(ctx, err, "a request of cluster "+name, func(context.Context) *fleet.Blocker {
				return &fleet.Blocker{Cause: "the cluster has not asked to join",
					Fix: fleet.JoinCluster.With("cluster", name, "context", "", "hub", o.Hub.Context)}
			}))
		}
		r.Done("")
	}
	return nil
}

// AwaitAvailable waits until accepted clusters are available.
func AwaitAvailable(ctx context.Context, o Options, names []string) error {
	return o.awaitEach(ctx, names, "available", func(ctx context.Context, r *fleet.Run, name string) error {
		return AwaitJoined(ctx, r, o.Hub, name, func(context.Context) *fleet.Blocker { return nil })
	})
}

// AwaitDenied waits until the hub has removed the rights of the clusters.
func AwaitDenied(ctx context.Context, o Options, names []string) error {
	return o.awaitEach(ctx, names, "denied", func(ctx context.Context, r *fleet.Run, name string) error {
		q := await.Query{Client: o.Hub.Client, Resource: fleet.ManagedClusters, Name: name, Clock: r.Given.Clock}
		err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return true, nil
			}
			c := apimeta.FindStatusCondition(fleet.ConditionsOf(items[0]), clusterv1.ConditionHubAccepted)
			// A cluster that was never accepted has no rights to lose.
			return c == nil || c.Status == metav1.ConditionFalse, nil
		})
		return r.TimedOut(ctx, err, "the hub to remove the rights of "+name+" away", func(context.Context) *fleet.Blocker {
			return &fleet.Blocker{Cause: "the hub's controllers have not processed the denial", Fix: fleet.HubStatus.On(o.Hub)}
		})
	})
}

// awaitEach waits for one cluster after another within one deadline.
func (o *Options) awaitEach(ctx context.Context, names []string, what string, wait func(context.Context, *fleet.Run, string) error) error {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	var failures []error
	for _, name := range names {
		r.Step(name + " " + what)
		if err := wait(ctx, r, name); err != nil {
			failures = append(failures, r.Fail(err))
			continue
		}
		r.Done("")
	}
	if len(failures) > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failures[0]
	}
	return fleet.Outcome(failures, len(names))
}
