// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// clockLimit is how far the clocks of a hub and a cluster may be apart: leases are renewed every
// minute.
const clockLimit = time.Minute

// site is a cluster on which something is to be installed.
type site struct {
	*checking
	cluster *fleet.Cluster
	// version is what its API server says, and skew how far its clock is ahead of ours.
	version string
	skew    time.Duration
}

// Before looks for what would keep a cluster from becoming a hub, or with Spoke that one from
// joining Hub, which may be nil then. Nothing is installed yet. Apart from reviews of the caller's
// rights, of which nothing is stored, it only reads.
func Before(ctx context.Context, o Options) Report {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &checking{o: &o, run: r}
	if o.Spoke == nil {
		h := &site{checking: c, cluster: o.Hub}
		return summary([]Area{{"before a hub (" + o.Hub.Where() + ")", h.look(ctx, CodeHubReached, []check{
			{CodeHubKubernetes, h.oldest(CodeHubKubernetes, fleet.OldestHub, "hub")},
			{CodeHubSigner, h.signs},
			{CodeHubTaken, h.otherHub},
			h.leavingHub(),
			{CodeHubAuthority, h.authority(CodeHubAuthority, hubObjects)},
			{CodeHubAddress, (&hubCheck{checking: c}).address},
		})}}, o.Skip)
	}
	s, h := &site{checking: c, cluster: o.Spoke}, &site{checking: c, cluster: o.Hub}
	var areas []Area
	if o.Hub != nil {
		areas = []Area{{"hub (" + o.Hub.Where() + ")", h.look(ctx, CodeHubReached, []check{
			{CodeHubInstalled, h.isHub}, {CodeHubAuthority, h.admits}, {CodeHubAddress, h.reachable}})}}
	}
	areas = append(areas, Area{"before joining (" + o.Spoke.Where() + ")", s.look(ctx, CodeSpokeReached, []check{
		{CodeSpokeKubernetes, s.oldest(CodeSpokeKubernetes, fleet.OldestManaged, "managed cluster")},
		{CodeSpokeTaken, s.otherAgent},
		s.leavingAgent(),
		{CodeSpokeAuthority, s.authority(CodeSpokeAuthority, agentObjects)},
		{CodeClusterClock, func(context.Context) ([]Finding, error) { return s.clock(h), nil }},
	})})
	return summary(areas, o.Skip)
}

// look runs checks of a cluster, if it answers at all.
func (s *site) look(ctx context.Context, code string, checks []check) []Finding {
	reach := s.runAll(ctx, []check{{code, func(ctx context.Context) (out []Finding, err error) {
		from := s.run.Now()
		if s.version, err = fleet.ServerVersion(ctx, s.cluster); err != nil {
			return nil, err
		}
		s.skew = s.cluster.Now(from).Sub(from)
		return good(code, "API server reachable, %s, %d ms", s.version, s.run.Given.Clock.Since(from).Milliseconds()), nil
	}}})
	if s.version == "" {
		return reach
	}
	return append(reach, s.runAll(ctx, checks)...)
}

func (s *site) oldest(code, oldest, side string) func(context.Context) ([]Finding, error) {
	return func(context.Context) ([]Finding, error) {
		if err := fleet.AtLeast(s.cluster, s.version, oldest, side); err != nil {
			return nil, err
		}
		return good(code, "Kubernetes %s is new enough for a %s", s.version, side), nil
	}
}

// signs reports a control plane that cannot sign certificates, or does not now.
func (s *site) signs(ctx context.Context) ([]Finding, error) {
	if err := hub.CheckSigning(ctx, s.cluster, s.version); err != nil {
		return nil, err
	}
	if found, err := s.signer(ctx); len(found) > 0 || err != nil {
		return found, err
	}
	return good(CodeHubSigner, "certificates can be signed"), nil
}

func (s *site) otherHub(ctx context.Context) ([]Finding, error) {
	err := hub.CheckOther(ctx, s.cluster)
	if isFixedBy(err, hub.Adopt) {
		return nil, refixed(err, TakeOverHub.On(s.cluster))
	}
	if isFixedBy(err, hub.CleanFirst) {
		return nil, refixed(err, CleanHub.On(s.cluster))
	}
	if err != nil {
		return nil, err
	}
	return good(CodeHubTaken, "no other hub is in the way"), nil
}

func (s *site) otherAgent(ctx context.Context) ([]Finding, error) {
	err := join.Vacant(ctx, join.Options{Spoke: s.cluster, Hub: s.o.Hub})
	if isFixedBy(err, join.Adopt) {
		return nil, refixed(err, TakeOverAgent.With("context", s.cluster.Context, "hub", s.hubContext()))
	}
	if err != nil {
		return nil, err
	}
	return good(CodeSpokeTaken, "no other agent is in the way"), nil
}

// isFixedBy reports whether the fix of an error is a remedy, refixed replaces it: what is part of
// another command there is one of its own here.
func isFixedBy(err error, code fleet.RemedyCode) bool {
	var e *fleet.Error
	if !errors.As(err, &e) {
		return false
	}
	r, ok := e.Fix.(fleet.Remedy)
	return ok && r.Code == code
}

func refixed(err error, fix fleet.Fix) error {
	var e *fleet.Error
	if errors.As(err, &e) {
		e.Fix = fix
	}
	return err
}

// leavingHub and leavingAgent report what is still being deleted of an earlier hub, or of an earlier
// agent.
func (s *site) leavingHub() check {
	return check{CodeHubLeftovers, s.leftovers(CodeHubLeftovers, func(ctx context.Context) error { return hub.CheckNamespaces(ctx, s.cluster) })}
}

func (s *site) leavingAgent() check {
	return check{CodeSpokeLeftovers, s.leftovers(CodeSpokeLeftovers, func(ctx context.Context) error { return join.Leaving(ctx, s.cluster) })}
}

// leftovers reports what an earlier installation has left behind and is being deleted: what is
// installed into it would go, too.
func (s *site) leftovers(code string, namespaces func(context.Context) error) func(context.Context) ([]Finding, error) {
	return func(ctx context.Context) ([]Finding, error) {
		if err := namespaces(ctx); err != nil {
			return nil, err
		}
		items, err := fleet.ListAll(ctx, s.cluster, fleet.Query{Resource: fleet.Definitions})
		if err != nil {
			return nil, fleet.Explain("listing definitions", s.cluster, err)
		}
		var out []Finding
		for i := range items {
			u := &items[i]
			if group, _, _ := unstructured.NestedString(u.Object, "spec", "group"); u.GetDeletionTimestamp() == nil || !strings.HasSuffix(group, hubGroups) {
				continue
			}
			out = append(out, failure(code, "definition "+u.GetName()+" is being deleted",
				fleet.OrElse(conditionMessage(u, "Terminating"), "its objects are not gone yet"),
				AwaitDefinition.On(s.cluster, "definition", u.GetName())))
		}
		if out != nil {
			return out, nil
		}
		return good(code, "nothing of an earlier installation is being deleted"), nil
	}
}

func conditionMessage(u *unstructured.Unstructured, kind string) string {
	for _, condition := range fleet.ConditionsOf(u) {
		if condition.Type == kind {
			return fleet.OneLine(condition.Message)
		}
	}
	return ""
}

func hubObjects() ([]*unstructured.Unstructured, error) {
	return confighub.Objects(confighub.Options{Image: "hub", Version: "v0.0.0"})
}

func agentObjects() ([]*unstructured.Unstructured, error) {
	return agent.Objects(agent.Options{Image: "agent", ClusterName: "cluster", BootstrapKubeconfig: []byte("{}")})
}

// everything is the right of cluster-admin.
var everything = []fleet.Right{{Resource: schema.GroupVersionResource{Group: "*", Resource: "*"}, Verbs: []string{"*"}}}

// authority reports rights that the caller lacks to apply what is installed. The API server lets
// nobody give away rights without having them, or the right to escalate.
func (s *site) authority(code string, objects func() ([]*unstructured.Unstructured, error)) func(context.Context) ([]Finding, error) {
	return func(ctx context.Context) ([]Finding, error) {
		missing, err := fleet.MissingRights(ctx, s.cluster, everything)
		if err != nil {
			return nil, fleet.Explain("asking for rights", s.cluster, err)
		}
		if len(missing) == 0 {
			return good(code, "you have the rights of an administrator"), nil
		}
		wanted, err := objects()
		if err != nil {
			return nil, err
		}
		if missing, err = fleet.MissingRights(ctx, s.cluster, rightsFor(wanted)); err != nil {
			return nil, fleet.Explain("asking for rights", s.cluster, err)
		}
		grants, err := fleet.MissingRights(ctx, s.cluster, []fleet.Right{{Resource: fleet.ClusterRoles, Verbs: []string{"escalate", "bind"}}})
		switch {
		case err != nil:
			return nil, fleet.Explain("asking for rights", s.cluster, err)
		case len(missing) > 0:
			return []Finding{failure(code, "you may not install it", "you lack: "+fleet.Listed(missing), s.grant(ctx))}, nil
		case len(grants) > 0:
			return []Finding{warning(code, "you may install it only if you have every right that it gets", "you lack: "+fleet.Listed(grants), s.grant(ctx))}, nil
		}
		return good(code, "you have the rights that it takes"), nil
	}
}

// grant is the fix that makes the caller an administrator.
func (s *site) grant(ctx context.Context) fleet.Fix {
	user, _ := token.WhoAmI(ctx, s.cluster) // servers older than this review do not answer
	return GrantAdmin.With("user", user, "where", s.cluster.Where())
}

// rightsFor returns the rights that applying objects takes.
func rightsFor(objects []*unstructured.Unstructured) []fleet.Right {
	rights := map[string]fleet.Right{}
	for _, u := range objects {
		resource := fleet.ResourceOf(u)
		rights[resource.Resource+" "+u.GetNamespace()] = fleet.Right{Resource: resource, Namespace: u.GetNamespace(), Verbs: []string{"get", "create", "patch"}}
	}
	var out []fleet.Right
	for _, key := range slices.Sorted(maps.Keys(rights)) {
		out = append(out, rights[key])
	}
	return out
}

func (s *site) isHub(ctx context.Context) ([]Finding, error) {
	if err := fleet.NeedHub(ctx, s.cluster); err != nil {
		return nil, err
	}
	return good(CodeHubInstalled, "it is a hub"), nil
}

// admits reports what the caller lacks to create a join token and to accept the cluster. With a
// token of an administrator a cluster joins without.
func (s *site) admits(ctx context.Context) ([]Finding, error) {
	resource := func(of schema.GroupVersionResource, part string) schema.GroupVersionResource {
		of.Resource += "/" + part
		return of
	}
	missing, err := fleet.MissingRights(ctx, s.cluster, []fleet.Right{
		{Resource: resource(fleet.ServiceAccounts, "token"), Namespace: operatorv1.NamespaceHub, Verbs: []string{"create"}},
		{Resource: fleet.Secrets, Namespace: operatorv1.NamespaceHub, Verbs: []string{"create"}},
		{Resource: fleet.ManagedClusters, Verbs: []string{"get", "patch"}},
		{Resource: resource(fleet.SigningRequests, "approval"), Verbs: []string{"update"}},
	})
	switch {
	case err != nil:
		return nil, fleet.Explain("asking for rights", s.cluster, err)
	case len(missing) > 0:
		return []Finding{failure(CodeHubAuthority, "you may not let clusters join", "you lack: "+fleet.Listed(missing), s.grant(ctx))}, nil
	}
	return good(CodeHubAuthority, "you may create join tokens and accept clusters"), nil
}

// reachable reports an address of the hub that the joining cluster cannot use.
func (s *site) reachable(ctx context.Context) ([]Finding, error) {
	e, _, err := trust.OfHub(ctx, s.cluster)
	if err != nil {
		return nil, err
	}
	if trust.IsLoopback(e.Server) && !trust.IsLoopback(s.o.Spoke.Server()) {
		return []Finding{failure(CodeHubAddress, e.Server+" is only valid on this machine: an agent elsewhere cannot reach it", "",
			PublishAddress.On(s.cluster))}, nil
	}
	return good(CodeHubAddress, "the agent will use %s", e.Server), nil
}

// clock compares the clock of the joining cluster with that of its hub.
func (s *site) clock(h *site) []Finding {
	if h.version == "" {
		return nil
	}
	if ahead := (s.skew - h.skew).Round(time.Second); ahead.Abs() > clockLimit {
		return []Finding{failure(CodeClusterClock, fmt.Sprintf("its clock differs from the hub's by %s", ahead.Abs()),
			"leases and certificates depend on clocks", fleet.Advice("set the cluster's clock"))}
	}
	return good(CodeClusterClock, "its clock agrees with the hub's")
}
