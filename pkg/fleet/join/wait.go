// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/accept"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// register follows the agent's registration on the hub as far as the options ask.
func (j *join) register(ctx context.Context) error {
	if j.Reads() {
		return nil
	}
	if !j.Wait && !j.Accept {
		return nil
	}
	follow := j.followRegistration
	for _, d := range j.processes() {
		next := follow
		follow = func(ctx context.Context) error { return workload.UnlessHopeless(ctx, j.Run, j.Spoke, d, next) }
	}
	return follow(ctx)
}

// followRegistration follows the registration while the agent can still start.
func (j *join) followRegistration(ctx context.Context) error {
	if err := j.awaitTakeOver(ctx); err != nil {
		return err
	}
	if err := j.followRepointed(ctx); err != nil {
		return err
	}
	if err := j.awaitRequested(ctx); err != nil {
		return err
	}
	if err := j.labelCluster(ctx); err != nil {
		return err
	}
	if j.Accept {
		if err := j.accept(ctx); err != nil {
			return err
		}
	}
	if j.result.State == Requested || !j.Wait {
		return nil
	}
	if err := j.awaitCertificate(ctx); err != nil {
		return err
	}
	return j.awaitAvailable(ctx)
}

// awaitRequested waits until the hub has the ManagedCluster and a pending request, or knows the
// cluster already.
func (j *join) awaitRequested(ctx context.Context) error {
	j.Step("registration requested")
	subject := "the registration of " + j.Name + " on the hub"
	err := await.Objects(ctx, await.Query{Client: j.hub.Client, Resource: fleet.ManagedClusters, Name: j.Name, Clock: j.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) { return len(items) == 1, nil })
	if err != nil {
		return j.TimedOut(ctx, err, subject, j.blocker)
	}
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, j.hub.Client, fleet.ManagedClusters, "", j.Name)
	if err != nil {
		return fleet.Explain("reading managedcluster "+j.Name, j.hub, err)
	}
	if mc.Spec.HubAcceptsClient && j.before != nil && j.before.Registered && j.asked == "" {
		j.result.State = Accepted
		j.Done("ManagedCluster/" + j.Name + " was accepted already")
		return nil
	}
	detail, err := j.awaitRequest(ctx, mc)
	if err != nil {
		return j.TimedOut(ctx, err, subject, j.blocker)
	}
	j.Done(detail)
	return nil
}

// awaitRequest waits for a certificate request of the cluster. A denied one ends the wait.
func (j *join) awaitRequest(ctx context.Context, mc *clusterv1.ManagedCluster) (string, error) {
	detail := ""
	started := mc.CreationTimestamp.Time
	q := await.Query{Client: j.hub.Client, Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName + "=" + j.Name + ",!" +
		clusterv1.LabelAddOnName, Clock: j.Given.Clock}
	err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		slices.SortFunc(items, func(a, b *unstructured.Unstructured) int {
			return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
		})
		for _, csr := range items {
			if j.asked != "" && csr.GetName() != j.asked {
				continue // of the time before
			}
			switch request.StateOf(csr) {
			case request.StatePending:
				detail = fmt.Sprintf("ManagedCluster/%s, CSR %s", j.Name, csr.GetName())
				if asked, err := request.ParseCSR(csr); err == nil {
					detail += ", key " + trust.ShortHash(request.Fingerprint(asked))
				}
				j.result.State = Requested
				return true, nil
			case request.StateApproved, request.StateIssued:
				if !csr.GetCreationTimestamp().Time.Before(started) {
					detail, j.result.State = "ManagedCluster/"+j.Name+", CSR "+csr.GetName()+" approved already", Requested
					if mc.Spec.HubAcceptsClient {
						j.result.State = Accepted
					}
					return true, nil
				}
			case request.StateDenied:
				if !csr.GetCreationTimestamp().Time.Before(j.Start) {
					return false, j.denied(csr)
				}
			}
		}
		return false, nil
	})
	return detail, err
}

func (j *join) denied(csr *unstructured.Unstructured) error {
	c := apimeta.FindStatusCondition(fleet.ConditionsOf(csr), "Denied")
	return &fleet.Error{Message: "the hub denied the request of " + j.Name, Cause: fleet.OneLine(c.Reason + ": " + c.Message),
		Fix: fleet.Advice("ask the hub's administrator, or use another name")}
}

// accept accepts the cluster with the caller's own rights on the hub.
func (j *join) accept(ctx context.Context) error {
	j.Step("accepted by you")
	common := *j.Given
	common.Progress, common.Wait = nil, false
	result, err := accept.Run(ctx, accept.Options{
		Common: common, Hub: j.Hub, Clusters: []string{j.Name}, Labels: j.Labels, Replace: j.isRepointed() || j.Replace, Own: j.asked,
	})
	if err != nil {
		return err
	}
	j.result.Items = append(j.result.Items, result.Items...)
	j.result.State = Accepted
	j.Done(result.Clusters[0].Message)
	return nil
}

// awaitAvailable waits until the cluster reports as available.
func (j *join) awaitAvailable(ctx context.Context) error {
	j.Step("joined, available")
	if err := accept.AwaitJoined(ctx, j.Run, j.hub, j.Name, j.blocker); err != nil {
		return err
	}
	j.result.State = Available
	j.Done("")
	return nil
}

// blocker looks on both clusters for what holds up the join.
func (j *join) blocker(ctx context.Context) *fleet.Blocker {
	q := fleet.Query{Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName + "=" + j.Name + ",!" + clusterv1.LabelAddOnName}
	if items, err := fleet.ListAll(ctx, j.hub, q); err == nil && len(items) > 0 {
		last := slices.MaxFunc(items, func(a, b unstructured.Unstructured) int {
			return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
		})
		if request.StateOf(&last) == request.StateDenied {
			c := apimeta.FindStatusCondition(fleet.ConditionsOf(&last), "Denied")
			return &fleet.Blocker{Cause: "its last request " + last.GetName() + " was denied: " + fleet.OneLine(c.Message), Since: last.GetCreationTimestamp().Time,
				Fix: AskForToken.On(j.Spoke, "cluster", j.Name)}
		}
	}
	return member.Blocker(ctx, j.Spoke, j.Klusterlet)
}
