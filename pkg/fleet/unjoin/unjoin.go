// SPDX-License-Identifier: Apache-2.0

package unjoin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Options say which cluster leaves its hub.
type Options struct {
	fleet.Common
	// Name of the cluster on the hub.
	Name string
	// Spoke is the cluster; nil when it no longer exists, which requires Force.
	Spoke *fleet.Cluster
	// Klusterlet declares the agent that leaves; empty means the one that is joined under the
	// name. A cluster with several hubs has several.
	Klusterlet string
	// Hub is the hub. Nil leaves the ManagedCluster there.
	Hub *fleet.Cluster
	// KeepWorks leaves what the hub's works applied on the cluster.
	KeepWorks bool
	// HubOnly requests only the hub's part: the agent, if there is one, stays installed and is
	// waited for.
	HubOnly bool
	// Force goes on when the agent does not do its part: it removes the finalizers that only a
	// live agent removes from add-ons and works on the hub, in the order of their removal, and
	// deletes the cluster's namespace there when it holds nothing of others.
	Force bool
	// Confirm is called before the first write and may return an error; nil skips it.
	Confirm func(Plan) error
}

// Plan is what Run would do, for the user to confirm.
type Plan struct {
	// Spoke and Hub name the clusters; empty for a side without a part in it.
	Spoke, Hub string
	// Applied are the works whose objects are on the cluster.
	Applied []AppliedWork
	// Works is the number of ManifestWorks on the hub, Objects the number of objects that they
	// have applied according to their status.
	Works, Objects int
	// Keeps is true when their objects stay on the cluster.
	Keeps bool
	// Stopped is why the agent cannot remove what works applied; empty when it
	// can.
	Stopped string
}

// AppliedWork is one work that was applied on a cluster.
type AppliedWork struct {
	// Name is that of the AppliedManifestWork, Work the name on the hub.
	Name string `json:"name"`
	Work string `json:"work"`
	// Objects is the number of objects applied.
	Objects int `json:"objects"`
	// Finalizers hold it.
	Finalizers []string `json:"finalizers,omitempty"`
}

// Result is what was removed.
type Result struct {
	// Cluster is the name on the hub.
	Cluster string `json:"cluster"`
	// Action is deleted, or unchanged when it was not joined.
	Action fleet.Action `json:"action"`
	// Applied are the works in the way, or left in place.
	Applied []AppliedWork `json:"works,omitempty"`
	// Stays are the works whose objects stay on the cluster, according to their status on the
	// hub.
	Stays []AppliedWork `json:"stays,omitempty"`
	// InTheWay is true when the unjoin was refused because of the works.
	InTheWay bool `json:"-"`
	// Leftovers are objects that could not be removed.
	Leftovers []string `json:"leftovers,omitempty"`
	// Items are the main objects that were deleted.
	Items []fleet.Change `json:"items"`
}

// unjoin is one run of Run.
type unjoin struct {
	*Options
	*fleet.Run
	agent *operatorv1.Klusterlet
	// joinedAs is the agent's name on its hub.
	joinedAs string
	// unreached is true when the managed cluster of a hosted agent is given up.
	unreached bool
	// remnants are what an agent without a Klusterlet has left on the cluster.
	remnants []string
	mc       *clusterv1.ManagedCluster
	works    []unstructured.Unstructured
	result   Result
}

// Run removes the agent from a cluster and, with Hub, the cluster from the hub. It refuses
// while works are applied that nothing would remove any more. It can be repeated after any
// failure.
func Run(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	u := &unjoin{Options: &o, Run: r, result: Result{Cluster: o.Name, Action: fleet.Unchanged}}
	if o.Name == "" {
		return u.result, fleet.Misuse("the name of the cluster is missing", "", NameCluster.With())
	}
	if o.HubOnly && o.Hub == nil {
		return u.result, fleet.Misuse("the hub is missing", "", NameHub.With())
	}
	if err := u.readState(ctx); err != nil {
		return u.result, err
	}
	if u.mc == nil && !u.hasAgent() {
		return u.result, nil
	}
	if err := u.check(); err != nil {
		return u.result, err
	}
	if u.plan(); o.Reads() {
		return u.result, nil
	}
	if o.Confirm != nil {
		if err := o.Confirm(u.describe(ctx)); err != nil {
			return u.result, err
		}
	}
	for _, step := range append(u.steps(ctx), u.removeOperator, u.verify) {
		if err := step(ctx); err != nil {
			return u.result, r.Fail(err)
		}
	}
	return u.result, nil
}

// steps returns what to do, in order. An agent that is to keep what works applied confirms
// that before its works are deleted; one that cannot is removed first.
func (u *unjoin) steps(ctx context.Context) []func(context.Context) error {
	switch {
	case !u.KeepWorks || u.mc == nil:
		return []func(context.Context) error{u.leaveHub, u.removeAgent}
	case u.hasAgent() && !u.agentWorks(ctx):
		return []func(context.Context) error{u.removeAgent, u.leaveHub}
	}
	return []func(context.Context) error{u.keepObjects, u.leaveHub, u.removeAgent}
}

// readState reads the state of both sides.
func (u *unjoin) readState(ctx context.Context) error {
	if u.Spoke != nil {
		if _, err := fleet.ServerVersion(ctx, u.Spoke); err != nil {
			return err
		}
		err := u.findAgent(ctx)
		if err == nil && u.agent == nil {
			u.remnants, err = u.leftBehind(ctx, false)
		}
		if err != nil {
			return err
		}
		if err := u.readApplied(ctx); err != nil {
			return err
		}
	}
	if u.Hub == nil {
		return nil
	}
	var err error
	u.mc, err = typed.Get[clusterv1.ManagedCluster](ctx, u.Hub.Client, fleet.ManagedClusters, "", u.Name)
	if fleet.IsNoKind(err) {
		return u.notHubError()
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fleet.Explain("reading managedcluster "+u.Name, u.Hub, err)
	}
	u.works, err = fleet.ListAll(ctx, u.Hub, fleet.Query{Resource: fleet.ManifestWorks, Namespace: u.Name})
	return fleet.Explain("listing the works of "+u.Name, u.Hub, err)
}

// findAgent finds the agent that is joined under the name. Without one it takes another, for the
// refusal to name it; an agent without a name only where it is the only one.
func (u *unjoin) findAgent(ctx context.Context) error {
	klusterlets, err := typed.List[operatorv1.Klusterlet](ctx, u.Spoke.Client, fleet.Klusterlets, "", metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fleet.Explain("reading the agents of "+u.Spoke.String(), u.Spoke, err)
	}
	var named []string
	for i := range klusterlets {
		k := &klusterlets[i]
		if u.Klusterlet != "" && k.Name != u.Klusterlet {
			continue
		}
		name, err := member.ReadName(ctx, u.Spoke, k)
		if err != nil {
			return err
		}
		switch {
		case name == u.Name:
			named = append(named, k.Name)
			u.agent, u.joinedAs = k, name
		case u.agent == nil && (name != "" || len(klusterlets) == 1 || u.Klusterlet != ""):
			u.agent, u.joinedAs = k, name
		}
	}
	if len(named) > 1 {
		return fleet.Misuse(fmt.Sprintf("%s is joined as %q to several hubs", u.Spoke, u.Name), "by klusterlet "+strings.Join(named, " and klusterlet "),
			NameKlusterlet.On(u.Spoke, "cluster", u.Name, "hub", u.hubContext(), "klusterlet", named[0]))
	}
	return nil
}

// klusterlet returns the name of the Klusterlet that leaves.
func (u *unjoin) klusterlet() string {
	if u.agent != nil {
		return u.agent.Name
	}
	return cmp.Or(u.Klusterlet, operatorv1.DefaultKlusterletName)
}

// appliedWorks lists what works have applied on the managed cluster; one that does not serve the
// kind has none. With Force, one that a hosted agent cannot reach does not hold it up.
func (u *unjoin) appliedWorks(ctx context.Context) ([]workv1.AppliedManifestWork, error) {
	managed, err := member.Managed(ctx, u.Spoke, u.agent)
	if err == nil && managed != u.Spoke {
		_, err = fleet.ServerVersion(ctx, managed)
	}
	if err != nil {
		if u.Force {
			u.unreached = true
			return nil, nil
		}
		return nil, err
	}
	list, err := typed.List[workv1.AppliedManifestWork](ctx, managed.Client, fleet.AppliedManifestWorks, "", metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return list, fleet.Explain("listing appliedmanifestworks", managed, err)
}

func (u *unjoin) readApplied(ctx context.Context) error {
	list, err := u.appliedWorks(ctx)
	for _, w := range list {
		if u.agent != nil && w.Spec.AgentID != "" && w.Spec.AgentID != string(u.agent.UID) {
			continue
		}
		u.result.Applied = append(u.result.Applied,
			AppliedWork{Name: w.Name, Work: w.Spec.ManifestWorkName, Objects: len(apply.Recorded(&w)), Finalizers: w.Finalizers})
	}
	return err
}

// check refuses what would do harm.
func (u *unjoin) check() error {
	if u.agent != nil && u.joinedAs != "" && u.joinedAs != u.Name {
		return fleet.Refuse(fmt.Sprintf("%s is joined as %q, not as %q", u.Spoke, u.joinedAs, u.Name), "the context or the name is wrong",
			Unjoin.On(u.Spoke, "cluster", u.joinedAs, "hub", u.hubContext()))
	}
	if u.agent != nil && u.Hub == nil && len(u.result.Applied) > 0 && !u.KeepWorks {
		u.result.InTheWay = true
		var names []string
		for _, w := range u.result.Applied {
			names = append(names, fmt.Sprintf("%s (%s)", w.Work, fleet.Many(w.Objects, "object")))
		}
		return fleet.Refuse(fmt.Sprintf("%s applied on %s", fleet.AreMany(len(names), "work"), u.Spoke), strings.Join(names, ", "), RemoveWorks.With())
	}
	if u.Spoke == nil && !u.Force && !u.HubOnly {
		return fleet.Refuse("the cluster itself is not named", "its agent cannot remove what works have applied", NameSpoke.With())
	}
	return nil
}

// hubContext names the hub as the user did.
func (u *unjoin) hubContext() string {
	if u.Hub == nil {
		return ""
	}
	return u.Hub.Context
}

func (u *unjoin) plan() {
	u.result.Action = fleet.Deleted
	deleted := func(kind schema.GroupVersionKind, name string) {
		u.result.Items = append(u.result.Items, fleet.Change{Object: fleet.Named(kind, "", name), Action: fleet.Deleted})
	}
	if u.mc != nil {
		deleted(clusterv1.GroupVersion.WithKind("ManagedCluster"), u.Name)
	}
	if u.agent != nil {
		deleted(operatorv1.GroupVersion.WithKind("Klusterlet"), u.agent.Name)
	}
	if u.hasAgent() {
		deleted(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, u.agentNamespace())
	}
}

func (u *unjoin) agentNamespace() string {
	if u.agent != nil {
		return u.agent.AgentNamespace()
	}
	return member.NamespaceFor(u.klusterlet())
}

func (u *unjoin) describe(ctx context.Context) Plan {
	p := Plan{Applied: u.result.Applied, Works: len(u.works), Keeps: u.KeepWorks || (u.Force && !u.agentWorks(ctx))}
	for _, w := range u.stayingWorks(u.works) {
		p.Objects += w.Objects
	}
	if b := u.agentTrouble(ctx); b != nil && u.agent != nil {
		p.Stopped = b.Cause
	}
	if u.hasAgent() {
		p.Spoke = u.Spoke.String()
	}
	if u.mc != nil {
		p.Hub = u.Hub.String()
	}
	return p
}

// agentPatience is how long an agent may take to remove itself before it is removed from here.
const agentPatience = 20 * time.Second

// removeAgent removes everything that was installed on the cluster.
func (u *unjoin) removeAgent(ctx context.Context) error {
	if !u.hasAgent() {
		return nil
	}
	u.Step("agent removed")
	if err := u.giveUpManaged(ctx); err != nil {
		return err
	}
	patience := agentPatience
	if u.agentTrouble(ctx) != nil {
		patience = 0 // no agent is left to do its part
	}
	err := teardown.Agent(ctx, u.Spoke.Client, teardown.AgentOptions{
		Klusterlet: u.klusterlet(), Namespace: u.agentNamespace(), Patience: patience, Progress: u.Detail,
	})
	switch {
	case err == nil:
		u.Done("from " + u.Spoke.Where())
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return &fleet.Error{Kind: fleet.Timeout, Message: fmt.Sprintf("timed out after %s removing the agent from %s", u.Given.Timeout, u.Spoke),
			Cause: fleet.OneLine(err.Error()), Fix: fleet.Advice("run the same command again; it continues where it stopped"), Err: err}
	}
	return fleet.Explain("removing the agent from "+u.Spoke.String(), u.Spoke, err)
}

// verify returns an error that names what is left on the cluster.
func (u *unjoin) verify(ctx context.Context) error {
	if !u.hasAgent() {
		return nil
	}
	left, err := u.leftBehind(ctx, !u.KeepWorks && len(u.result.Applied) == 0)
	if err != nil {
		return err
	}
	if !u.KeepWorks && !u.agent.IsHosted() {
		list, err := u.appliedWorks(ctx)
		if err != nil {
			return err
		}
		for _, w := range list { // no agent has removed their objects
			if slices.ContainsFunc(u.result.Applied, func(a AppliedWork) bool { return a.Name == w.Name }) {
				left = append(left, fmt.Sprintf("%s of work %s in appliedmanifestwork/%s", fleet.Many(len(apply.Recorded(&w)), "object"),
					w.Spec.ManifestWorkName, w.Name))
			}
		}
	}
	u.result.Leftovers = left
	if len(left) > 0 {
		u.Remark("left on "+u.Spoke.Where(), strings.Join(left, ", "))
	}
	return nil
}

// hasAgent reports whether there is anything of an agent to remove.
func (u *unjoin) hasAgent() bool {
	return u.Spoke != nil && (u.agent != nil || len(u.remnants) > 0)
}

// leftBehind returns what the agent's installation has left on the cluster. The definitions of kinds
// that may outlive it, because objects of them stay, count only with definitions.
func (u *unjoin) leftBehind(ctx context.Context, definitions bool) ([]string, error) {
	out, err := fleet.Leftovers(ctx, u.Spoke, operatorv1.LabelCreatedByKlusterlet+"="+u.klusterlet())
	if err != nil || definitions {
		return out, err
	}
	return slices.DeleteFunc(out, func(name string) bool {
		return strings.HasPrefix(name, "customresourcedefinition") && !strings.Contains(name, fleet.Klusterlets.GroupResource().String())
	}), nil
}

// notHubError is the error for a cluster that is not a hub, or no longer one.
func (u *unjoin) notHubError() error {
	e := fleet.NotHub(u.Hub, "it does not serve "+fleet.ManagedClusters.GroupResource().String())
	e.Fix = OtherHub.With()
	if u.Spoke != nil {
		e.Fix = OtherHubOrNone.On(u.Spoke, "cluster", u.Name)
	}
	return e
}
