// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// acceptParallel bounds how many clusters are accepted at the same time.
const acceptParallel = 8

// Options say which clusters to accept or deny.
type Options struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Clusters are their names.
	Clusters []string
	// AllPending means every cluster with a request that can be trusted, except clusters that
	// have joined before and are requested with a join token: those have to be named.
	AllPending bool
	// Requesters select requests by the common name they ask for, and senders to trust by user
	// name; both match exactly.
	Requesters []string
	// Deny denies the clusters instead.
	Deny bool
	// Replace allows another agent to take over the name of an agent whose lease is fresh.
	Replace bool
	// Notice is called, before a cluster is accepted, with the labels that it gave itself; it
	// may be nil. Calls never overlap.
	Notice func(SelfLabels)
	// Labels are put on the clusters that are accepted.
	Labels map[string]string

	// Own is the only request to approve. It was read on the cluster itself by a user with all
	// rights there, so it is the agent's, and the one whose key the agent keeps.
	Own string
	// uses counts the uses of tokens; requests sets it.
	uses *request.Uses
	// readers is read on first use.
	readers func() (readers, error)
}

// Cluster is what happened to one cluster.
type Cluster struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Action is created when this run accepted (or denied) the cluster.
	Action fleet.Action `json:"action"`
	// Message says what was done.
	Message string `json:"message"`
	// Replaces is the agent that another one has replaced.
	Replaces string `json:"replaces,omitempty"`
	// Error is why it failed; nil on success.
	Error error `json:"-"`
	// Failure is the text of Error.
	Failure string `json:"error,omitempty"`
	// Changes are the objects that were changed.
	Changes []fleet.Change `json:"-"`
}

// Result is what happened to all the clusters.
type Result struct {
	// Clusters holds one entry per cluster, by name.
	Clusters []Cluster `json:"clusters"`
	// Items are all objects that were changed.
	Items []fleet.Change `json:"items"`
}

// Requests lists the certificate requests of clusters on the hub: pending ones first, then by
// cluster.
func Requests(ctx context.Context, o Options) ([]request.Request, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	out, err := o.requests(ctx, r)
	if err != nil {
		return nil, err
	}
	return out, o.describe(ctx, out, r.Now())
}

func (o *Options) requests(ctx context.Context, r *fleet.Run) ([]request.Request, error) {
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName})
	if err != nil {
		return nil, fleet.Explain("listing certificate requests", o.Hub, err)
	}
	tokens, err := request.Tokens(ctx, o.Hub, r.Now())
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	var out []request.Request
	for i := range items {
		out = append(out, request.Parse(&items[i], o.Requesters, tokens))
	}
	slices.SortFunc(out, func(a, b request.Request) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), a.Created.Compare(b.Created.Time))
	})
	if o.uses, err = request.ReadUses(ctx, o.Hub, tokens, items); err != nil {
		return nil, err
	}
	o.uses.Mark(out)
	return out, nil
}

// Run accepts clusters: it approves their requests after checking exactly who sent them and
// what they ask for, and only then accepts the ManagedCluster. With several clusters, a
// failure does not stop the others; the error is then of kind Partial and the result shows
// which failed.
func Run(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	for _, name := range o.Clusters {
		if err := naming.Check(name); err != nil {
			return Result{}, err
		}
	}
	if err := fleet.NeedHub(ctx, o.Hub); err != nil {
		return Result{}, err
	}
	if o.Wait && !o.Deny && !o.Reads() && !o.AllPending {
		if err := o.awaitRequests(ctx, r); err != nil {
			return Result{}, err
		}
	}
	requests, err := o.requests(ctx, r)
	if err != nil {
		return Result{}, err
	}
	names := o.clusterNames(requests)
	if len(names) == 0 {
		return Result{}, nil
	}
	return o.each(ctx, r, names, requests)
}

// clusterNames returns the clusters to act on, sorted and without duplicates.
func (o *Options) clusterNames(requests []request.Request) []string {
	names := slices.Clone(o.Clusters)
	for _, q := range requests {
		if o.AllPending && q.State == request.StatePending && q.Identity != "renewal" {
			names = append(names, q.Cluster)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (o *Options) each(ctx context.Context, r *fleet.Run, names []string, requests []request.Request) (Result, error) {
	result := Result{Clusters: make([]Cluster, len(names))}
	var group errgroup.Group
	var mu sync.Mutex
	if notice := o.Notice; notice != nil {
		o.Notice = func(l SelfLabels) {
			mu.Lock()
			defer mu.Unlock()
			notice(l)
		}
	}
	o.readers = sync.OnceValues(func() (readers, error) { return readReaders(ctx, o.Hub) })
	group.SetLimit(acceptParallel)
	for i, name := range names {
		group.Go(func() error {
			result.Clusters[i] = o.acceptOrDeny(ctx, r, name, requests)
			return nil
		})
	}
	_ = group.Wait()
	var failures []error
	for i := range result.Clusters {
		a := &result.Clusters[i]
		result.Items = append(result.Items, a.Changes...)
		if a.Error != nil {
			a.Failure = a.Error.Error()
			failures = append(failures, a.Error)
		}
	}
	return result, fleet.Outcome(failures, len(names))
}

// acceptOrDeny accepts or denies one cluster.
func (o *Options) acceptOrDeny(ctx context.Context, r *fleet.Run, name string, all []request.Request) Cluster {
	out := Cluster{Cluster: name, Action: fleet.Unchanged}
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, o.Hub.Client, fleet.ManagedClusters, "", name)
	if err != nil && !apierrors.IsNotFound(err) {
		out.Error = fleet.Explain("reading managedcluster "+name, o.Hub, err)
		return out
	}
	var mine []request.Request
	known := mc != nil && cluster.EverJoined(mc)
	for _, q := range all {
		if q.Cluster != name || (o.Own != "" && q.Name != o.Own) {
			continue
		}
		switch q.State {
		case request.StatePending, request.StateUntrusted:
			mine = append(mine, q)
		case request.StateApproved, request.StateIssued:
			known = true
		}
	}
	if o.Deny {
		out.Error = o.deny(ctx, r, mc, mine, &out)
	} else {
		out.Error = o.admit(ctx, r, applicant{mc, mine, known}, &out)
	}
	return out
}

// applicant is what is known of a cluster that is to be accepted.
type applicant struct {
	// mc is its ManagedCluster; nil when there is none.
	mc *clusterv1.ManagedCluster
	// requests are pending.
	requests []request.Request
	// known is true when an earlier request was approved already.
	known bool
}

// admit approves what may be approved, and accepts the cluster.
func (o *Options) admit(ctx context.Context, r *fleet.Run, a applicant, out *Cluster) error {
	mc := a.mc
	held, err := o.readHolder(ctx, mc)
	if err != nil {
		return err
	}
	chosen, err := o.chooseRequests(out.Cluster, a, held, r.Now())
	if err != nil {
		return err
	}
	if mc == nil {
		return &fleet.Error{Message: fmt.Sprintf("cluster %q has not asked to join", out.Cluster), Cause: "there is no ManagedCluster of that name on " +
			o.Hub.String(),
			Fix: fleet.JoinCluster.With("cluster", out.Cluster, "context", "", "hub", o.Hub.Context)}
	}
	if len(chosen) == 0 && !mc.Spec.HubAcceptsClient && !a.known {
		return &fleet.Error{Message: fmt.Sprintf("cluster %q has not asked to join", out.Cluster), Cause: "it has no certificate request to approve",
			Fix: fleet.AcceptAndWait.On(o.Hub, "cluster", out.Cluster)}
	}
	if o.Notice != nil {
		given, err := o.selfLabels(mc)
		if err != nil {
			return err
		}
		if len(given.Labels) > 0 {
			o.Notice(given)
		}
	}
	return o.approve(ctx, r, applicant{mc: mc, requests: chosen}, held, out)
}

// approve approves the chosen requests and accepts their cluster.
func (o *Options) approve(ctx context.Context, r *fleet.Run, a applicant, held holding, out *Cluster) error {
	for _, q := range a.requests {
		if err := o.uses.Spend(q); err != nil {
			return err
		}
		if err := o.answer(ctx, q, request.Approval(r.Now()), "approving", out); err != nil {
			return err
		}
		out.Action, out.Message = fleet.Configured, "approved "+q.Name
		if held.isRival(q) {
			out.Replaces = held.agent
			out.Message += "; " + held.describeRivals(q, r.Now())
		}
	}
	change, err := o.setAccepted(ctx, r, a.mc.Name, true, o.Labels)
	if err != nil {
		return fleet.Explain("accepting "+a.mc.Name, o.Hub, err)
	}
	out.Changes = append(out.Changes, change)
	if change.Action != fleet.Unchanged {
		out.Action, out.Message = fleet.Created, "accepted"
	} else if out.Message == "" {
		out.Message = "was accepted already"
	}
	return nil
}

// answer approves or denies a request; an error says what it was doing.
func (o *Options) answer(ctx context.Context, q request.Request, condition map[string]any, doing string, out *Cluster) error {
	if !o.Reads() {
		if err := request.Answer(ctx, o.Hub, q.Object, condition); err != nil {
			return fleet.Explain(doing+" "+q.Name, o.Hub, err)
		}
	}
	out.Changes = append(out.Changes, fleet.Change{Object: fleet.Reference(q.Object), Action: fleet.Configured})
	return nil
}

// setAccepted sets hubAcceptsClient and adds labels.
func (o *Options) setAccepted(ctx context.Context, r *fleet.Run, name string, accepted bool, labels map[string]string) (fleet.Change, error) {
	u := fleet.Named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", name)
	u.Object["spec"] = map[string]any{"hubAcceptsClient": accepted}
	if len(labels) > 0 {
		u.SetLabels(labels)
	}
	return write.Merge(ctx, r, o.Hub, u)
}

// chooseRequests returns the requests to approve, or an error when none can be. Requests of more than
// one sender or agent are ambiguous: nothing is approved. Of several requests of one agent
// only the newest counts: the agent waits for that one and has lost the keys of the others.
func (o *Options) chooseRequests(name string, a applicant, held holding, now time.Time) ([]request.Request, error) {
	var good []request.Request
	var bad *request.Request
	for i, q := range a.requests {
		if len(o.Requesters) > 0 && !slices.Contains(o.Requesters, q.Requester) && !slices.Contains(o.Requesters, q.User) {
			continue
		}
		if q.State == request.StatePending {
			good = append(good, q)
		} else if bad == nil {
			bad = &a.requests[i]
		}
	}
	switch {
	case len(good) > 0:
	case bad != nil:
		return nil, request.Distrust(*bad, o.Hub)
	default:
		return nil, nil
	}
	if err := o.checkSingleAgent(name, held, good, now); err != nil {
		return nil, err
	}
	if o.AllPending && !slices.Contains(o.Clusters, name) && len(o.Requesters) == 0 && isTakeOver(a.mc, good[0], now) {
		return nil, fleet.Refuse(fmt.Sprintf("cluster %q has joined before", name),
			good[0].Requester+" asks for its name, and so for everything that is meant for it",
			AcceptIfSame.On(o.Hub, "cluster", name))
	}
	return newest(good), nil
}

// newest returns the most recent requests; creation times have a resolution of one second.
func newest(requests []request.Request) []request.Request {
	last := slices.MaxFunc(requests, func(a, b request.Request) int { return a.Created.Compare(b.Created.Time) })
	return slices.DeleteFunc(requests, func(q request.Request) bool { return q.Created.Before(&last.Created) })
}

// isTakeOver reports whether a request sent with a join token, not by the agent itself, asks
// for the name of a cluster that has joined. The holder of a token could ask for the name of a
// cluster that is only away; an agent whose certificate has expired sends such a request too,
// under its former name.
func isTakeOver(mc *clusterv1.ManagedCluster, q request.Request, now time.Time) bool {
	if mc == nil || q.Identity == "renewal" || !cluster.EverJoined(mc) {
		return false
	}
	agent := mc.Annotations[clusterv1.AnnotationAgentName]
	return cluster.Certified(mc, now) || q.Requester != clusterv1.UserPrefix+mc.Name+":"+agent
}

// checkSingleAgent refuses requests of more than one agent, and requests of an agent other than the one
// that reports unless Replace is set.
func (o *Options) checkSingleAgent(name string, held holding, good []request.Request, now time.Time) error {
	for _, q := range good {
		if q.Requester != good[0].Requester || q.User != good[0].User {
			return fleet.Refuse(fmt.Sprintf("cluster %q is requested by more than one agent or sender", name),
				fmt.Sprintf("%s by %s, %s by %s", good[0].Requester, good[0].User, q.Requester, q.User),
				ChooseRequester.On(o.Hub))
		}
	}
	if held.isRival(good[0]) && !o.Replace {
		return o.contestedError(held, good[0], now)
	}
	return nil
}

// deny denies the cluster and its pending requests.
func (o *Options) deny(ctx context.Context, r *fleet.Run, mc *clusterv1.ManagedCluster, mine []request.Request, out *Cluster) error {
	if mc == nil && len(mine) == 0 {
		return naming.NoCluster(out.Cluster, o.Hub)
	}
	if mc != nil && mc.Spec.HubAcceptsClient {
		change, err := o.setAccepted(ctx, r, mc.Name, false, nil)
		if err != nil {
			return fleet.Explain("denying "+mc.Name, o.Hub, err)
		}
		out.Changes = append(out.Changes, change)
	}
	never := isUnanswered(mc)
	if never {
		// First, so that the requests are denied again by who runs this again after a failure.
		if err := o.refuse(ctx, r, mc.Name); err != nil {
			return fleet.Explain("denying "+mc.Name, o.Hub, err)
		}
		out.Changes = append(out.Changes, fleet.Change{
			Object: fleet.Named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", mc.Name), Action: fleet.Configured})
	}
	for _, q := range mine {
		if err := o.answer(ctx, q, request.Denial("DeniedByKubectlOCM", "denied by a person", r.Now()), "denying", out); err != nil {
			return err
		}
	}
	if len(out.Changes) > 0 {
		out.Action = fleet.Configured
	}
	switch wasAccepted := mc != nil && mc.Spec.HubAcceptsClient; {
	case never, !wasAccepted && len(mine) > 0:
		out.Message = "denied: it was not accepted; " + fleet.Many(len(mine), "certificate request") + " denied"
	case len(out.Changes) > 0:
		out.Message = "denied"
	default:
		out.Message = "was denied already"
	}
	return nil
}

// isUnanswered reports whether a cluster was neither accepted nor denied yet.
func isUnanswered(mc *clusterv1.ManagedCluster) bool {
	return mc != nil && !mc.Spec.HubAcceptsClient && mc.DeletionTimestamp == nil &&
		apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionHubAccepted) == nil
}

// maxConflicts bounds how often a write is repeated because the hub or an agent was faster.
const maxConflicts = 5

// refuse records on a cluster that was never accepted that a person denied it, as the hub does for
// one that was: until then it waits for an answer. Nothing else of its status is changed.
func (o *Options) refuse(ctx context.Context, r *fleet.Run, name string) error {
	if o.Reads() {
		return nil
	}
	var err error
	for range maxConflicts {
		var mc *clusterv1.ManagedCluster
		if mc, err = typed.Get[clusterv1.ManagedCluster](ctx, o.Hub.Client, fleet.ManagedClusters, "", name); err != nil {
			return err
		}
		if mc.Spec.HubAcceptsClient {
			return fmt.Errorf("managedcluster %s was accepted meanwhile", name)
		}
		reconcile.SetCondition(&mc.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionFalse,
			Reason: clusterv1.ReasonHubClusterAdminDenied, Message: "A person denied the cluster before it was accepted"}, r.Now())
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": mc.ResourceVersion},
			"status": map[string]any{"conditions": mc.Status.Conditions}}); err != nil {
			return err
		}
		_, err = o.Hub.Client.Resource(fleet.ManagedClusters).Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: fleet.FieldManager}, "status")
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}
