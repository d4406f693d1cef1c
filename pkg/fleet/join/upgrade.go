// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/operator"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// UpgradeOptions say which agent to move to which release.
type UpgradeOptions struct {
	fleet.Common
	// Name is the name that the cluster must have on its hub; empty accepts any.
	Name string
	// Spoke is the cluster of the agent.
	Spoke *fleet.Cluster
	// Hub is the hub of the agent, whose release must work with the agent's. Nil is not asked.
	Hub *fleet.Cluster
	// Klusterlet is the name of the Klusterlet that declares the agent; empty means the default.
	Klusterlet string
	// Image is that of the agent; empty takes that of the release from where the current one came.
	// Version is the release.
	Image, Version string
}

// UpgradeResult is the result of Upgrade.
type UpgradeResult struct {
	// Cluster is the name on the hub.
	Cluster string `json:"cluster"`
	// From and Version are the releases before and after.
	From    string `json:"from"`
	Version string `json:"version"`
	// Action is configured, or unchanged when there was nothing to do.
	Action fleet.Action `json:"action"`
	// Items are the objects that were applied.
	Items []fleet.Change `json:"items"`
}

// Upgrade moves an agent of ours to another release and waits until it runs. Its name, its access
// to the hub, its rights and its settings stay, and nothing is asked of the hub. It refuses to go
// back to an older release, which may not know what a newer one has stored.
func Upgrade(ctx context.Context, o UpgradeOptions) (UpgradeResult, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	o.Klusterlet = cmp.Or(o.Klusterlet, operatorv1.DefaultKlusterletName)
	j := &join{Options: &Options{Common: o.Common, Name: o.Name, Spoke: o.Spoke, Klusterlet: o.Klusterlet, Image: o.Image, Version: o.Version}, Run: r}
	result := UpgradeResult{Cluster: o.Name, Version: o.Version, Action: fleet.Unchanged}
	r.Step("agent to upgrade")
	d, err := j.readAgent(ctx)
	if err != nil {
		return result, r.Fail(err)
	}
	result.Cluster, result.From = j.Name, hub.TagOf(hub.ImageOf(d))
	if err := o.checkRelease(ctx, result.From); err != nil {
		return result, r.Fail(err)
	}
	if j.Image == "" {
		repository, _ := image.Split(hub.ImageOf(d))
		j.Image = repository + ":" + o.Version
	}
	r.Done(result.From)
	if j.operator != nil {
		err = j.upgradeOperator(ctx)
	} else if err = j.stopServed(ctx); err == nil {
		err = j.install(ctx)
	}
	result.Items, result.Action = j.result.Items, cmp.Or(j.result.Action, fleet.Unchanged)
	if err != nil || o.Reads() || !o.Wait {
		return result, r.Fail(err)
	}
	r.Step("agent")
	if _, err := workload.Deployed(ctx, r, o.Spoke, d.Namespace, d.Name); err != nil {
		return result, r.Fail(err)
	}
	r.Done(o.Version)
	return result, nil
}

// upgradeOperator moves the operator to another release, and with it all agents that it runs.
func (j *join) upgradeOperator(ctx context.Context) error {
	j.Step("operator")
	objects, err := operator.Objects(j.Image)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Namespace" })
	changes, err := write.All(ctx, j.Run, j.Spoke, objects)
	j.result.Items, j.result.Action = changes, fleet.Worst(changes)
	if err == nil {
		j.Done("deployment " + operatorv1.NamespaceOperator + "/" + member.OperatorDeployment + " on " + j.Spoke.Where())
	}
	return err
}

// readServing returns the operator of ours that runs the agent of the Klusterlet; nil if none does.
// One that a chart or bundle installed is upgraded with it.
func (j *join) readServing(ctx context.Context) (*appsv1.Deployment, error) {
	if err := j.checkServed(ctx); err != nil || !j.isServed() {
		j.operator = nil
		return nil, err
	}
	namespace, err := place{j.Spoke, operatorv1.NamespaceOperator}.read(ctx)
	if err == nil && namespace.GetLabels()[operatorv1.LabelKlusterletOperator] != fleet.FieldManager {
		err = fleet.Refuse("the operator on "+j.Spoke.String()+" runs the agent, and was not installed by a join",
			"deployment "+j.operator.Namespace+"/"+j.operator.Name+" runs "+hub.ImageOf(j.operator), fleet.Advice("upgrade it by what installed it"))
	}
	return j.operator, err
}

// readAgent reads what runs the agent, and refuses what is not ours.
func (j *join) readAgent(ctx context.Context) (*appsv1.Deployment, error) {
	if _, err := fleet.ServerVersion(ctx, j.Spoke); err != nil {
		return nil, err
	}
	var err error
	if j.before, err = member.Read(ctx, j.Spoke, j.Klusterlet); err != nil {
		return nil, err
	}
	none := fleet.JoinCluster.With("cluster", j.Name, "context", j.Spoke.Context, "hub", "")
	switch b := j.before; {
	case b == nil:
		return nil, fleet.Refuse(j.Spoke.String()+" has no agent to upgrade", "there is no klusterlet/"+j.Klusterlet, none)
	case b.Klusterlet.DeletionTimestamp != nil:
		return nil, fleet.Refuse("the agent of "+j.Spoke.String()+" is being removed", "klusterlet/"+j.Klusterlet+" is being deleted",
			FinishUnjoin.On(j.Spoke, "cluster", b.Name))
	case b.Name == "":
		return nil, fleet.Refuse("the agent of "+j.Spoke.String()+" has no name yet", "klusterlet/"+j.Klusterlet+" names no cluster", none)
	case j.Name != "" && j.Name != b.Name:
		return nil, fleet.Refuse(j.Spoke.String()+" is joined as "+b.Name+", not as "+j.Name, "the context or the name is wrong",
			fleet.Advice("leave the name out, or use another context"))
	}
	j.Name = j.before.Name
	if d, err := j.readServing(ctx); err != nil || d != nil {
		return d, err
	}
	d, err := typed.Get[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, j.namespace(), operatorv1.AgentDeployment(j.Klusterlet))
	switch {
	case apierrors.IsNotFound(err):
		return nil, fleet.Refuse(j.Spoke.String()+" has no agent to upgrade", "there is no deployment "+j.namespace()+"/"+
			operatorv1.AgentDeployment(j.Klusterlet), none)
	case err != nil:
		return nil, fleet.Explain("reading the agent", j.Spoke, err)
	case member.RunsOurs(d) != "run":
		return nil, fleet.Refuse(j.Spoke.String()+" has the agent of another distribution", "deployment "+d.Namespace+"/"+d.Name+" runs "+hub.ImageOf(d),
			AdoptAgent.On(j.Spoke, "cluster", j.Name))
	}
	return d, cmp.Or(j.checkLeaving(ctx), j.readBeside(ctx), j.keepRights(ctx))
}

// keepRights keeps narrow rights narrow: without the binding to the role admin.
func (j *join) keepRights(ctx context.Context) error {
	for _, prefix := range []string{"kubectl-ocm:", "open-cluster-management:"} {
		binding := fleet.Named(rbacVersion.WithKind("ClusterRoleBinding"), "", prefix+j.Klusterlet+"-work:execution-admin")
		live, err := write.Live(ctx, j.Spoke, binding)
		if err != nil {
			return fleet.Explain("reading "+fleet.Describe(binding), j.Spoke, err)
		}
		if live != nil {
			return nil
		}
	}
	j.NarrowRights = true
	return nil
}

// readBeside reads the other Klusterlets of the cluster.
func (j *join) readBeside(ctx context.Context) error {
	klusterlets, err := klusterletsOf(ctx, j.Spoke)
	j.beside = slices.DeleteFunc(klusterlets, func(k operatorv1.Klusterlet) bool { return k.Name == j.Klusterlet })
	return err
}

// klusterletsOf reads the Klusterlets of a cluster.
func klusterletsOf(ctx context.Context, c *fleet.Cluster) ([]operatorv1.Klusterlet, error) {
	klusterlets, err := typed.List[operatorv1.Klusterlet](ctx, c.Client, fleet.Klusterlets, "", metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return klusterlets, fleet.Explain("reading the agents of "+c.String(), c, err)
}

// checkRelease refuses an older release than the agent's, and one that the hub does not work with.
func (o *UpgradeOptions) checkRelease(ctx context.Context, from string) error {
	if hub.IsOlder(o.Version, from) {
		return fleet.Refuse("the agent of "+o.Spoke.String()+" would be downgraded", "it has "+from+", and "+o.Version+" is older",
			fleet.Advice("use "+from+" or newer"))
	}
	if o.Hub == nil {
		return nil
	}
	d, err := hub.Deployment(ctx, o.Hub)
	if err != nil || d == nil || hub.OthersHub(d) {
		return err
	}
	if release := hub.TagOf(hub.ImageOf(d)); !hub.Fits(release, o.Version) {
		return fleet.Refuse("the hub of "+o.Hub.String()+" does not work with an agent of "+o.Version, "it has "+release+": "+hub.FittingText,
			hub.UpgradeFirst.On(o.Hub))
	}
	return nil
}
