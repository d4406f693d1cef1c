// SPDX-License-Identifier: Apache-2.0

package unjoin

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// keepObjects makes the deletion of the works harmless, before anything deletes them.
func (u *unjoin) keepObjects(ctx context.Context) error {
	u.Step("works told to leave their objects")
	kept, err := teardown.Keep(ctx, u.Hub.Client, teardown.KeepOptions{Namespace: u.Name, Clock: u.Given.Clock, Progress: u.Detail})
	switch {
	case errors.Is(err, teardown.ErrNotKept):
		e := fleet.Refuse("the agent of "+u.Name+" is alive and does not confirm that it leaves what works applied; nothing was deleted", fleet.OneLine(err.Error()),
			fleet.MendWorks.On(u.Hub, "cluster", u.Name))
		e.Err = err
		return e
	case err != nil:
		return u.TimedOut(ctx, err, "the agent of "+u.Name+" to let go of what works applied", u.deletionBlocker)
	}
	away := slices.ContainsFunc(kept, func(k teardown.KeptCluster) bool { return !k.Confirmed })
	if away && !u.Force {
		return fleet.Refuse("the agent of "+u.Name+" is away and cannot confirm that it leaves what works applied; nothing was deleted",
			"an agent that comes back takes works that are gone for lost, and removes their objects after an hour",
			u.byForce("true"))
	}
	u.Done("")
	return nil
}

// stayingWorks returns what works have on the cluster, according to their status.
func (u *unjoin) stayingWorks(works []unstructured.Unstructured) []AppliedWork {
	var out []AppliedWork
	for i := range works {
		w := AppliedWork{Work: works[i].GetName()}
		if work, err := typed.FromUnstructured[workv1.ManifestWork](&works[i]); err == nil {
			w.Objects = teardown.AppliedObjects(work)
		}
		out = append(out, w) // a work that cannot be read stays too, with whatever it has applied
	}
	return out
}

// leaveHub deletes the ManagedCluster and waits until it is gone. Its works are deleted with
// it; the agent removes their objects meanwhile, unless they are to stay.
func (u *unjoin) leaveHub(ctx context.Context) error {
	if u.mc == nil {
		return nil
	}
	u.Step("left the hub")
	if u.KeepWorks {
		u.result.Stays = u.stayingWorks(u.works)
	}
	policy := metav1.DeletePropagationBackground
	err := u.Hub.Client.Resource(fleet.ManagedClusters).Delete(ctx, u.Name,
		metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &u.mc.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fleet.Explain("deleting managedcluster "+u.Name, u.Hub, err)
	}
	if !u.agentWorks(ctx) && (u.Force || u.KeepWorks) {
		if err := u.releaseAll(ctx); err != nil {
			return err
		}
	}
	if err = u.awaitLeft(ctx); err != nil {
		return u.TimedOut(ctx, err, "managedcluster/"+u.Name+" to be gone", u.deletionBlocker)
	}
	if u.Force {
		if err := u.removeNamespace(ctx); err != nil {
			return err
		}
	}
	u.Done(u.Hub.Where())
	return nil
}

// awaitLeft waits until the ManagedCluster is gone. With Force the agent gets some of the
// time, but not all: then its works are released.
func (u *unjoin) awaitLeft(ctx context.Context) error {
	gone := func(items []*unstructured.Unstructured) (bool, error) {
		if len(items) == 0 || items[0].GetUID() != u.mc.UID {
			return true, nil
		}
		u.Detail(cluster.ConditionText(fleet.ConditionsOf(items[0]), clusterv1.ConditionDeleting))
		return false, nil
	}
	q := await.Query{Client: u.Hub.Client, Resource: fleet.ManagedClusters, Name: u.Name, Clock: u.Given.Clock}
	if u.Force {
		patient, cancel := context.WithTimeout(ctx, agentPatience)
		err := await.Objects(patient, q, gone)
		cancel()
		if err == nil || patient.Err() == nil || ctx.Err() != nil {
			return err
		}
		if err := u.releaseAll(ctx); err != nil {
			return err
		}
	}
	return await.Objects(ctx, q, gone)
}

// agentWorks reports whether the agent can still do its part: its lease is fresh, unless the hub
// is not named, and its pod runs as far as this can be checked.
func (u *unjoin) agentWorks(ctx context.Context) bool {
	return (u.agent != nil || u.Spoke == nil) && (u.mc == nil || cluster.Alive(u.mc)) && u.agentTrouble(ctx) == nil
}

// agentTrouble returns why the agent's pod does not run; nil when it does.
func (u *unjoin) agentTrouble(ctx context.Context) *fleet.Blocker {
	if u.Spoke == nil {
		return nil
	}
	names := []string{operatorv1.AgentDeployment(u.klusterlet())}
	if u.agent != nil {
		names = member.Deployments(ctx, u.Spoke, u.agent)
	}
	for _, name := range names {
		if b := workload.Stopped(ctx, u.Spoke, u.agentNamespace(), name); b != nil {
			return b
		}
	}
	return nil
}

// deletionBlocker returns what holds up the deletion of a ManagedCluster.
func (u *unjoin) deletionBlocker(ctx context.Context) *fleet.Blocker {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, u.Hub.Client, fleet.ManagedClusters, "", u.Name)
	if err != nil {
		return &fleet.Blocker{Cause: fleet.OneLine(err.Error())}
	}
	var fix fleet.Fix
	if !u.Force {
		fix = u.byForce("")
	}
	if b := u.agentTrouble(ctx); b != nil {
		return &fleet.Blocker{Cause: "its agent removes what works have applied, and it does not run: " + b.Cause, Since: b.Since, Fix: fix}
	}
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDeleting); c != nil {
		b := fleet.BlockedBy(c, fix)
		if held := u.describeHolders(ctx); held != "" {
			b.Cause += "; " + held
		}
		return b
	}
	return &fleet.Blocker{Cause: "finalizers: " + strings.Join(mc.Finalizers, ", "), Fix: fix}
}

// byForce is the fix that goes on without the agent; keep, when not empty, leaves the objects
// of works where they are.
func (u *unjoin) byForce(keep string) fleet.Fix {
	switch {
	case u.HubOnly:
		return RemoveByForce.On(u.Hub, "cluster", u.Name, "keep", keep)
	case u.Spoke == nil:
		return DetachByForce.With("cluster", u.Name, "hub", u.hubContext(), "keep", keep)
	}
	return UnjoinByForce.On(u.Spoke, "cluster", u.Name, "hub", u.hubContext(), "keep", keep)
}
