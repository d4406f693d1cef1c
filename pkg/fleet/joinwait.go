// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// agentDeployment runs the agent of the compact layout.
const agentDeployment = "klusterlet-agent"

// register follows the agent's registration on the hub as far as was asked for.
func (j *join) register(ctx context.Context) error {
	if j.reads() {
		return nil
	}
	if !j.Wait && !j.Accept {
		return nil
	}
	return j.unlessHopeless(ctx, j.Spoke, operatorv1.NamespaceAgent, agentDeployment, j.registered)
}

// registered follows the registration while the agent can come to run.
func (j *join) registered(ctx context.Context) error {
	if err := j.follow(ctx); err != nil {
		return err
	}
	if err := j.requested(ctx); err != nil {
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
	if j.result.State == JoinRequested || !j.Wait {
		return nil
	}
	if err := j.arrived(ctx); err != nil {
		return err
	}
	return j.available(ctx)
}

// requested waits until the hub holds the ManagedCluster and a request that
// waits for an answer, or knows the cluster already.
func (j *join) requested(ctx context.Context) error {
	j.step("registration requested")
	subject := "the registration of " + j.Name + " on the hub"
	err := await.Objects(ctx, await.Query{Client: j.hub.Client, Resource: managedClusters, Name: j.Name, Clock: j.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) { return len(items) == 1, nil })
	if err != nil {
		return j.timedOut(ctx, err, subject, j.blocker)
	}
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, j.hub.Client, managedClusters, "", j.Name)
	if err != nil {
		return explain("reading managedcluster "+j.Name, j.hub, err)
	}
	if mc.Spec.HubAcceptsClient && j.before != nil && j.before.registered && j.asked == "" {
		j.result.State = JoinAccepted
		j.done("ManagedCluster/" + j.Name + " was accepted already")
		return nil
	}
	detail, err := j.awaitRequest(ctx, mc)
	if err != nil {
		return j.timedOut(ctx, err, subject, j.blocker)
	}
	j.done(detail)
	return nil
}

// awaitRequest waits for a certificate request of the cluster. One that was
// denied is told at once.
func (j *join) awaitRequest(ctx context.Context, mc *clusterv1.ManagedCluster) (string, error) {
	detail := ""
	started := mc.CreationTimestamp.Time
	q := await.Query{Client: j.hub.Client, Resource: signingRequests, Labels: clusterv1.LabelClusterName + "=" + j.Name + ",!" + clusterv1.LabelAddOnName, Clock: j.common.Clock}
	err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		slices.SortFunc(items, func(a, b *unstructured.Unstructured) int {
			return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
		})
		for _, csr := range items {
			if j.asked != "" && csr.GetName() != j.asked {
				continue // of the time before
			}
			switch stateOf(csr) {
			case StatePending:
				detail = fmt.Sprintf("ManagedCluster/%s, CSR %s", j.Name, csr.GetName())
				if asked, err := parseCSR(csr); err == nil {
					detail += ", key " + short(fingerprint(asked))
				}
				j.result.State = JoinRequested
				return true, nil
			case StateApproved, StateIssued:
				if !csr.GetCreationTimestamp().Time.Before(started) {
					detail, j.result.State = "ManagedCluster/"+j.Name+", CSR "+csr.GetName()+" approved already", JoinRequested
					if mc.Spec.HubAcceptsClient {
						j.result.State = JoinAccepted
					}
					return true, nil
				}
			case StateDenied:
				if !csr.GetCreationTimestamp().Time.Before(j.start) {
					return false, j.denied(csr)
				}
			}
		}
		return false, nil
	})
	return detail, err
}

func (j *join) denied(csr *unstructured.Unstructured) error {
	c := apimeta.FindStatusCondition(conditionsOf(csr), "Denied")
	return &Error{Message: "the hub denied the request of " + j.Name, Cause: oneLine(c.Reason + ": " + c.Message), Fix: "ask the hub's administrator, or use another name"}
}

// accept lets the cluster in with our own rights on the hub.
func (j *join) accept(ctx context.Context) error {
	j.step("accepted by you (--accept)")
	common := *j.common
	common.Progress, common.Wait = nil, false
	result, err := Accept(ctx, AcceptOptions{Common: common, Hub: j.Hub, Clusters: []string{j.Name}, Labels: j.Labels, Replace: j.repointed(), own: j.asked})
	if err != nil {
		return err
	}
	j.result.Items = append(j.result.Items, result.Items...)
	j.result.State = JoinAccepted
	j.done(result.Clusters[0].Message)
	return nil
}

// available waits until the cluster reports as available.
func (j *join) available(ctx context.Context) error {
	j.step("joined, available")
	if err := awaitAvailable(ctx, j.run, j.hub, j.Name, j.blocker); err != nil {
		return err
	}
	j.result.State = JoinAvailable
	j.done("")
	return nil
}

// awaitAvailable waits until a cluster is joined and available on the hub.
func awaitAvailable(ctx context.Context, r *run, hub *Cluster, name string, find func(context.Context) *blocker) error {
	var last *unstructured.Unstructured
	err := await.Objects(ctx, await.Query{Client: hub.Client, Resource: managedClusters, Name: name, Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				if last != nil {
					return false, &Error{Message: "managedcluster/" + name + " was deleted on the hub while it joined", Fix: "run the same command again"}
				}
				return false, nil
			}
			last = items[0]
			if conditionTrue(last, clusterv1.ConditionJoined) && conditionTrue(last, clusterv1.ConditionAvailable) {
				return true, nil
			}
			r.detail(joinDetail(last))
			return false, nil
		})
	return r.timedOut(ctx, err, "managedcluster/"+name+" to be available", func(ctx context.Context) *blocker {
		if last != nil {
			for _, kind := range []string{clusterv1.ConditionDuplicateClusterName, clusterv1.ConditionHubAccepted, clusterv1.ConditionAvailable} {
				c := apimeta.FindStatusCondition(conditionsOf(last), kind)
				if c != nil && (c.Status == "True") == (kind == clusterv1.ConditionDuplicateClusterName) {
					return blockedBy(c, "")
				}
			}
		}
		return find(ctx)
	})
}

func joinDetail(mc *unstructured.Unstructured) string {
	if conditionTrue(mc, clusterv1.ConditionJoined) {
		return "joined, not yet available"
	}
	if conditionTrue(mc, clusterv1.ConditionHubAccepted) {
		return "accepted, the agent has not reported yet"
	}
	return "waiting for the hub to let the agent in"
}

// blocker looks on both clusters for what the join hangs on.
func (j *join) blocker(ctx context.Context) *blocker {
	q := query{resource: signingRequests, labels: clusterv1.LabelClusterName + "=" + j.Name + ",!" + clusterv1.LabelAddOnName}
	if items, err := listAll(ctx, j.hub, q); err == nil && len(items) > 0 {
		last := slices.MaxFunc(items, func(a, b unstructured.Unstructured) int {
			return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
		})
		if stateOf(&last) == StateDenied {
			c := apimeta.FindStatusCondition(conditionsOf(&last), "Denied")
			return &blocker{cause: "its last request " + last.GetName() + " was denied: " + oneLine(c.Message), since: last.GetCreationTimestamp().Time,
				fix: "ask the hub's administrator for a new token, then unjoin and join again: kubectl ocm unjoin " + j.Name + j.Spoke.flag()}
		}
	}
	return agentBlocker(ctx, j.Spoke)
}

// agentBlocker looks on a managed cluster for what its agent hangs on.
func agentBlocker(ctx context.Context, spoke *Cluster) *blocker {
	if spoke == nil {
		return nil
	}
	if b := podBlocker(ctx, spoke, operatorv1.NamespaceAgent, agentDeployment); b != nil {
		return b
	}
	k, err := typed.Get[operatorv1.Klusterlet](ctx, spoke.Client, klusterlets, "", operatorv1.DefaultKlusterletName)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return &blocker{cause: "klusterlet/klusterlet is gone", fix: "run join again"}
		}
		return &blocker{cause: oneLine(err.Error())}
	}
	if c := apimeta.FindStatusCondition(k.Status.Conditions, operatorv1.ConditionApplied); c != nil && c.Status == "False" {
		return blockedBy(c, "")
	}
	c := apimeta.FindStatusCondition(k.Status.Conditions, operatorv1.ConditionHubConnectionDegraded)
	if c == nil {
		return &blocker{cause: "the agent has written no condition to klusterlet/klusterlet",
			fix: "kubectl logs -n " + operatorv1.NamespaceAgent + " deploy/klusterlet-agent" + spoke.flag()}
	}
	if c.Status != "True" {
		return nil
	}
	fix := "kubectl logs -n " + operatorv1.NamespaceAgent + " deploy/klusterlet-agent" + spoke.flag()
	if strings.Contains(c.Reason, operatorv1.ReasonBootstrapSecretUnauthorized) {
		fix = "run join again with a new token (kubectl ocm hub token); nothing needs to be undone"
	}
	return blockedBy(c, fix)
}

// awaitRequests waits until every named cluster has something to be accepted.
func (o *AcceptOptions) awaitRequests(ctx context.Context, r *run) error {
	for _, name := range o.Clusters {
		r.step("request of " + name)
		mc, err := typed.Get[clusterv1.ManagedCluster](ctx, o.Hub.Client, managedClusters, "", name)
		if err == nil && certified(mc, r.now()) {
			r.done("it has a certificate already")
			continue
		}
		q := await.Query{Client: o.Hub.Client, Resource: signingRequests, Labels: clusterv1.LabelClusterName + "=" + name + ",!" + clusterv1.LabelAddOnName, Clock: r.common.Clock}
		err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
			return slices.ContainsFunc(items, func(u *unstructured.Unstructured) bool { return stateOf(u) == StatePending }), nil
		})
		if err != nil {
			return r.fail(r.timedOut(ctx, err, "a request of cluster "+name, func(context.Context) *blocker {
				return &blocker{cause: "the cluster has not asked to be joined", fix: fmt.Sprintf("kubectl ocm join %s --context <its context> --hub-context %s", name, ShellWord(o.Hub.Context))}
			}))
		}
		r.done("")
	}
	return nil
}

// AwaitAvailable waits until accepted clusters are available.
func AwaitAvailable(ctx context.Context, o AcceptOptions, names []string) error {
	return o.awaitEach(ctx, names, "available", func(ctx context.Context, r *run, name string) error {
		return awaitAvailable(ctx, r, o.Hub, name, func(context.Context) *blocker { return nil })
	})
}

// AwaitDenied waits until the hub has taken the rights of clusters away.
func AwaitDenied(ctx context.Context, o AcceptOptions, names []string) error {
	return o.awaitEach(ctx, names, "denied", func(ctx context.Context, r *run, name string) error {
		q := await.Query{Client: o.Hub.Client, Resource: managedClusters, Name: name, Clock: r.common.Clock}
		err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return true, nil
			}
			c := apimeta.FindStatusCondition(conditionsOf(items[0]), clusterv1.ConditionHubAccepted)
			// One that never was accepted has no rights to lose.
			return c == nil || c.Status == metav1.ConditionFalse, nil
		})
		return r.timedOut(ctx, err, "the hub to take the rights of "+name+" away", func(context.Context) *blocker {
			return &blocker{cause: "the hub's controllers have not taken note of the denial", fix: "kubectl ocm hub status" + o.Hub.flag()}
		})
	})
}

// awaitEach waits for one cluster after the other within one deadline.
func (o *AcceptOptions) awaitEach(ctx context.Context, names []string, what string, wait func(context.Context, *run, string) error) error {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	var failures []error
	for _, name := range names {
		r.step(name + " " + what)
		if err := wait(ctx, r, name); err != nil {
			failures = append(failures, r.fail(err))
			continue
		}
		r.done("")
	}
	if len(failures) > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failures[0]
	}
	return outcome(failures, len(names))
}
