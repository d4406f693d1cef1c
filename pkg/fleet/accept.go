// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// acceptParallel bounds how many clusters are accepted at the same time.
const acceptParallel = 8

// AcceptOptions say which clusters to let in.
type AcceptOptions struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Clusters are their names.
	Clusters []string
	// AllPending means every cluster with a request that can be trusted, but for
	// those that have joined before and are asked for with a join token: they have
	// to be named.
	AllPending bool
	// Requesters select requests by the common name they ask for, and vouch for
	// senders by their user name, both exactly.
	Requesters []string
	// Deny refuses the clusters instead.
	Deny bool
	// Replace lets another agent take the name of one whose lease is fresh.
	Replace bool
	// Notice is told, before a cluster is let in, of labels that it gave itself; nil
	// for nobody. It is called by one at a time.
	Notice func(SelfLabels)
	// Labels are put on the clusters that are accepted.
	Labels map[string]string

	// own is the only request to approve, read on the cluster itself by somebody
	// who has all rights there: it is the agent's, and the one whose key it keeps.
	own string
	// uses counts the uses of tokens; requests sets it.
	uses *tokenUses
	// readers are read when they are needed first.
	readers func() (readers, error)
}

// Accepted is what happened to one cluster.
type Accepted struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Action is created when the cluster was let in (or refused) now.
	Action Action `json:"action"`
	// Message says what was done.
	Message string `json:"message"`
	// Replaces is the agent whose place another one was given.
	Replaces string `json:"replaces,omitempty"`
	// Error is why it failed; nil when it did not.
	Error error `json:"-"`
	// Failure is the text of Error.
	Failure string `json:"error,omitempty"`
	// Changes are the objects that were changed.
	Changes []Change `json:"-"`
}

// AcceptResult is what happened to all of them.
type AcceptResult struct {
	// Clusters holds one entry a cluster, by name.
	Clusters []Accepted `json:"clusters"`
	// Items are all objects that were changed.
	Items []Change `json:"items"`
}

// Requests lists the certificate requests of clusters on the hub: those that
// wait for an answer first, then by cluster.
func Requests(ctx context.Context, o AcceptOptions) ([]Request, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	out, err := o.requests(ctx, r)
	if err != nil {
		return nil, err
	}
	return out, o.describe(ctx, out, r.now())
}

func (o *AcceptOptions) requests(ctx context.Context, r *run) ([]Request, error) {
	items, err := listAll(ctx, o.Hub, query{resource: signingRequests, labels: clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName})
	if err != nil {
		return nil, explain("listing certificate requests", o.Hub, err)
	}
	tokens, err := readTokens(ctx, o.Hub, r.now())
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	var out []Request
	for i := range items {
		out = append(out, parseRequest(&items[i], o.Requesters, tokens))
	}
	slices.SortFunc(out, func(a, b Request) int {
		if d := strings.Compare(a.Cluster, b.Cluster); d != 0 {
			return d
		}
		return a.Created.Compare(b.Created.Time)
	})
	if o.uses, err = readUses(ctx, o.Hub, tokens, items); err != nil {
		return nil, err
	}
	o.uses.mark(out)
	return out, nil
}

// Accept lets clusters in: it approves their requests after checking exactly who
// sent them and what they ask for, and then, and only then, accepts the
// ManagedCluster. With several clusters the others go on when one fails; the
// error is then of kind Partial and the result tells which.
func Accept(ctx context.Context, o AcceptOptions) (AcceptResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	for _, name := range o.Clusters {
		if err := CheckName(name); err != nil {
			return AcceptResult{}, err
		}
	}
	if err := needHub(ctx, o.Hub); err != nil {
		return AcceptResult{}, err
	}
	if o.Wait && !o.Deny && !o.reads() && !o.AllPending {
		if err := o.awaitRequests(ctx, r); err != nil {
			return AcceptResult{}, err
		}
	}
	requests, err := o.requests(ctx, r)
	if err != nil {
		return AcceptResult{}, err
	}
	names := o.names(requests)
	if len(names) == 0 {
		return AcceptResult{}, nil
	}
	return o.each(ctx, r, names, requests)
}

// names returns the clusters meant, sorted, each once.
func (o *AcceptOptions) names(requests []Request) []string {
	set := map[string]bool{}
	for _, name := range o.Clusters {
		set[name] = true
	}
	for _, q := range requests {
		if o.AllPending && q.State == StatePending && q.Identity != "renewal" {
			set[q.Cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (o *AcceptOptions) each(ctx context.Context, r *run, names []string, requests []Request) (AcceptResult, error) {
	out := make([]Accepted, len(names))
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
			a := o.one(ctx, r, name, requests)
			mu.Lock()
			defer mu.Unlock()
			if a.Error != nil {
				a.Failure = a.Error.Error()
			}
			out[i] = a
			return nil
		})
	}
	_ = group.Wait()
	result := AcceptResult{Clusters: out}
	var failures []error
	for _, a := range out {
		result.Items = append(result.Items, a.Changes...)
		if a.Error != nil {
			failures = append(failures, a.Error)
		}
	}
	return result, outcome(failures, len(names))
}

// outcome folds the failures of many clusters into one error.
func outcome(failures []error, total int) error {
	switch {
	case len(failures) == 0:
		return nil
	case slices.ContainsFunc(failures, func(err error) bool { return errors.Is(err, context.Canceled) }):
		return context.Canceled
	case total == 1:
		return failures[0]
	}
	out := &Error{Kind: kindOf(failures), Message: fmt.Sprintf("all %d clusters failed", total), Cause: oneLine(failures[0].Error()), Err: errors.Join(failures...)}
	if len(failures) < total {
		out.Kind, out.Message = Partial, fmt.Sprintf("%d of %d clusters failed", len(failures), total)
	}
	var first *Error
	if errors.As(failures[0], &first) {
		out.Fix = first.Fix
	}
	return out
}

// kindOf returns the kind that all errors share, else Failed.
func kindOf(failures []error) Kind {
	kind := Kind(-1)
	for _, err := range failures {
		var e *Error
		if !errors.As(err, &e) || (kind >= 0 && e.Kind != kind) {
			return Failed
		}
		kind = e.Kind
	}
	return kind
}

// one accepts or denies one cluster.
func (o *AcceptOptions) one(ctx context.Context, r *run, name string, all []Request) Accepted {
	out := Accepted{Cluster: name, Action: Unchanged}
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, o.Hub.Client, managedClusters, "", name)
	if err != nil && !apierrors.IsNotFound(err) {
		out.Error = explain("reading managedcluster "+name, o.Hub, err)
		return out
	}
	var mine []Request
	known := mc != nil && everJoined(mc)
	for _, q := range all {
		if q.Cluster != name || (o.own != "" && q.Name != o.own) {
			continue
		}
		switch q.State {
		case StatePending, StateUntrusted:
			mine = append(mine, q)
		case StateApproved, StateIssued:
			known = true
		}
	}
	switch {
	case o.Deny:
		out.Error = o.deny(ctx, r, mc, mine, &out)
	default:
		out.Error = o.admit(ctx, r, applicant{mc, mine, known}, &out)
	}
	return out
}

// applicant is what is known of a cluster that shall be accepted.
type applicant struct {
	// mc is its ManagedCluster; nil when there is none.
	mc *clusterv1.ManagedCluster
	// requests wait for an answer.
	requests []Request
	// known tells that an earlier request was approved already.
	known bool
}

// admit approves what may be approved and accepts the cluster.
func (o *AcceptOptions) admit(ctx context.Context, r *run, a applicant, out *Accepted) error {
	mc := a.mc
	held, err := o.holderOf(ctx, mc)
	if err != nil {
		return err
	}
	chosen, err := o.choose(out.Cluster, a, held, r.now())
	if err != nil {
		return err
	}
	if mc == nil {
		return &Error{Message: fmt.Sprintf("cluster %q has not asked to be joined", out.Cluster), Cause: "there is no ManagedCluster of that name on " + o.Hub.String(),
			Fix: fmt.Sprintf("kubectl ocm join %s --context <its context> --hub-context %s", out.Cluster, ShellWord(o.Hub.Context))}
	}
	if len(chosen) == 0 && !mc.Spec.HubAcceptsClient && !a.known {
		return &Error{Message: fmt.Sprintf("cluster %q has not asked to be joined", out.Cluster), Cause: "there is no certificate request of it to approve",
			Fix: fmt.Sprintf("kubectl ocm accept %s --wait%s", out.Cluster, o.Hub.flag())}
	}
	if err := o.notice(mc); err != nil {
		return err
	}
	return o.approve(ctx, r, applicant{mc: mc, requests: chosen}, held, out)
}

// notice tells of the labels that a cluster gave itself.
func (o *AcceptOptions) notice(mc *clusterv1.ManagedCluster) error {
	if o.Notice == nil || len(selfGiven(mc)) == 0 {
		return nil
	}
	readers, err := o.readers()
	if err != nil {
		return err
	}
	o.Notice(readers.brought(mc))
	return nil
}

// approve approves the requests that were chosen, and accepts their cluster.
func (o *AcceptOptions) approve(ctx context.Context, r *run, a applicant, held holding, out *Accepted) error {
	chosen := a.requests
	for i := range chosen {
		if err := o.uses.spend(chosen[i]); err != nil {
			return err
		}
		if !o.reads() {
			if err := answer(ctx, o.Hub, chosen[i].object, approval(r.now())); err != nil {
				return explain("approving "+chosen[i].Name, o.Hub, err)
			}
		}
		out.Changes = append(out.Changes, Change{Object: reference(chosen[i].object), Action: Configured})
		out.Action, out.Message = Configured, "approved "+chosen[i].Name
		if held.rival(chosen[i]) {
			out.Replaces = held.agent
			out.Message += "; " + held.both(chosen[i], r.now())
		}
	}
	return o.acceptCluster(ctx, r, a.mc, out)
}

// everJoined tells whether an agent of the cluster has had a certificate. The
// condition goes back when the acceptance is withdrawn; the hub's note stays.
func everJoined(mc *clusterv1.ManagedCluster) bool {
	return mc.Annotations[clusterv1.AnnotationAgentName] != "" || apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined)
}

// certified tells whether the agent's certificate is good as far as the hub
// knows: then being accepted is all that the cluster needs.
func certified(mc *clusterv1.ManagedCluster, now time.Time) bool {
	if at, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires]); err == nil {
		return now.Before(at)
	}
	return mc.Spec.HubAcceptsClient || everJoined(mc)
}

// acceptCluster sets hubAcceptsClient and the labels.
func (o *AcceptOptions) acceptCluster(ctx context.Context, r *run, mc *clusterv1.ManagedCluster, out *Accepted) error {
	u := named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", mc.Name)
	u.Object["spec"] = map[string]any{"hubAcceptsClient": true}
	if len(o.Labels) > 0 {
		u.SetLabels(o.Labels)
	}
	change, err := r.merge(ctx, o.Hub, u)
	if err != nil {
		return explain("accepting "+mc.Name, o.Hub, err)
	}
	out.Changes = append(out.Changes, change)
	if change.Action != Unchanged {
		out.Action, out.Message = Created, "accepted"
	} else if out.Message == "" {
		out.Message = "was accepted already"
	}
	return nil
}

// choose returns the requests to approve, or why none can be. Requests of more
// than one sender or agent are ambiguous: nothing is approved. Of several of one
// agent only the newest counts: it waits for that one, and the keys of the others
// are lost.
func (o *AcceptOptions) choose(name string, a applicant, held holding, now time.Time) ([]Request, error) {
	var good []Request
	var bad *Request
	for i, q := range a.requests {
		if len(o.Requesters) > 0 && !slices.Contains(o.Requesters, q.Requester) && !slices.Contains(o.Requesters, q.User) {
			continue
		}
		if q.State == StatePending {
			good = append(good, q)
		} else if bad == nil {
			bad = &a.requests[i]
		}
	}
	if len(good) == 0 && bad != nil {
		return nil, untrusted(*bad, o.Hub)
	}
	if len(good) == 0 {
		return nil, nil
	}
	if err := o.single(name, held, good, now); err != nil {
		return nil, err
	}
	if o.AllPending && !slices.Contains(o.Clusters, name) && len(o.Requesters) == 0 && takesOver(a.mc, good[0], now) {
		return nil, refused(fmt.Sprintf("cluster %q has joined before", name), good[0].Requester+" asks for its name and, with it, for all that is meant for it",
			fmt.Sprintf("when it is that cluster: kubectl ocm accept %s%s", name, o.Hub.flag()))
	}
	return newest(good), nil
}

// newest returns the requests that came last; the API server counts in seconds.
func newest(requests []Request) []Request {
	last := slices.MaxFunc(requests, func(a, b Request) int { return a.Created.Compare(b.Created.Time) })
	return slices.DeleteFunc(requests, func(q Request) bool { return q.Created.Before(&last.Created) })
}

// takesOver tells whether a request of a join token, not of the agent itself,
// asks for the name of a cluster that has joined. Who holds a token could ask for
// the place of a cluster that is only away; an agent whose certificate has ended
// asks so too, and under its former name.
func takesOver(mc *clusterv1.ManagedCluster, q Request, now time.Time) bool {
	if mc == nil || q.Identity == "renewal" || !everJoined(mc) {
		return false
	}
	agent := mc.Annotations[clusterv1.AnnotationAgentName]
	return certified(mc, now) || q.Requester != clusterv1.UserPrefix+mc.Name+":"+agent
}

// single refuses requests of more than one agent, and those of another agent
// than the one that reports, unless it shall take its place.
func (o *AcceptOptions) single(name string, held holding, good []Request, now time.Time) error {
	for _, q := range good {
		if q.Requester != good[0].Requester || q.User != good[0].User {
			return refused(fmt.Sprintf("cluster %q is asked for by more than one", name),
				fmt.Sprintf("%s by %s, %s by %s", good[0].Requester, good[0].User, q.Requester, q.User),
				"kubectl ocm accept --show"+o.Hub.flag()+"      then choose one by --requester")
		}
	}
	if held.rival(good[0]) && !o.Replace {
		return o.contested(held, good[0], now)
	}
	return nil
}

// alive tells whether the agent of an accepted cluster reports.
func alive(mc *clusterv1.ManagedCluster) bool {
	c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	return mc.Spec.HubAcceptsClient && c != nil && c.Status != metav1.ConditionUnknown && everJoined(mc)
}

// deny refuses the cluster and its waiting requests.
func (o *AcceptOptions) deny(ctx context.Context, r *run, mc *clusterv1.ManagedCluster, mine []Request, out *Accepted) error {
	if mc == nil && len(mine) == 0 {
		return NoCluster(out.Cluster, o.Hub)
	}
	if mc != nil && mc.Spec.HubAcceptsClient {
		u := named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", mc.Name)
		u.Object["spec"] = map[string]any{"hubAcceptsClient": false}
		change, err := r.merge(ctx, o.Hub, u)
		if err != nil {
			return explain("denying "+mc.Name, o.Hub, err)
		}
		out.Changes = append(out.Changes, change)
	}
	for i := range mine {
		if !o.reads() {
			if err := answer(ctx, o.Hub, mine[i].object, denial("DeniedByKubectlOCM", "denied by kubectl ocm accept --deny", r.now())); err != nil {
				return explain("denying "+mine[i].Name, o.Hub, err)
			}
		}
		out.Changes = append(out.Changes, Change{Object: reference(mine[i].object), Action: Configured})
	}
	out.Message = "was denied already"
	if len(out.Changes) > 0 {
		out.Action, out.Message = Configured, "denied"
	}
	return nil
}
