// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/agent/operator"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// checkHosted checks what belongs to the mode without a request.
func (o *Options) checkHosted() error {
	hosted := o.Mode.IsHosted()
	switch {
	case !hosted && len(o.ManagedKubeconfig) > 0:
		return fleet.Misuse("only a hosted agent needs the kubeconfig of its cluster", "the agent runs on the cluster that joins",
			fleet.Advice("choose a hosted mode, or leave the kubeconfig out"))
	case !hosted:
		return nil
	case len(o.ManagedKubeconfig) == 0:
		return fleet.Misuse("the kubeconfig of the cluster that joins is missing", "its agent is hosted elsewhere", NameManaged.With())
	case o.Adopt || o.NarrowRights:
		return fleet.Misuse("a hosted agent is neither adopted nor given narrow rights", "the operator of its hosting cluster runs it",
			fleet.Advice("leave that out"))
	}
	return member.CheckHosted(o.Klusterlet)
}

// openManaged opens the managed cluster of a hosted agent.
func (j *join) openManaged() error {
	if !j.Mode.IsHosted() {
		return nil
	}
	config, err := kubeconfig.Parse(j.ManagedKubeconfig)
	if err != nil {
		return fleet.Misuse("the kubeconfig of the managed cluster cannot be used", err.Error(),
			fleet.Advice("make one with a token or a client certificate in it, of a user with the rights of cluster-admin"))
	}
	j.remote, err = member.Connect(config)
	return err
}

// managed returns the cluster that joins.
func (j *join) managed() *fleet.Cluster { return cmp.Or(j.remote, j.Spoke) }

// checkApart refuses to host an agent for the hosting cluster, or for the hub, instead of a cluster
// to manage.
func (j *join) checkApart(ctx context.Context) error {
	if !j.Mode.IsHosted() {
		return nil
	}
	own, err := identityOf(ctx, j.managed())
	if err != nil {
		return err
	}
	if _, err := fleet.ServerVersion(ctx, j.Spoke); err != nil {
		return err
	}
	hosting, err := identityOf(ctx, j.Spoke)
	if err != nil {
		return err
	}
	message := "the kubeconfig of the managed cluster does not lead to another cluster"
	if own == hosting {
		return fleet.Refuse(message, j.managed().Server()+" is the hosting cluster, "+j.Spoke.String(), ManageOther.With())
	}
	// A join token may not read namespaces.
	if of, err := identityOf(ctx, j.hub); (err == nil && of == own) || j.hub.Server() == j.managed().Server() {
		return fleet.Refuse(message, j.managed().Server()+" is the hub", ManageOther.With())
	}
	return nil
}

// identityOf returns what distinguishes a cluster from every other one, whatever its address.
func identityOf(ctx context.Context, c *fleet.Cluster) (types.UID, error) {
	ns, err := c.Client.Resource(fleet.Namespaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fleet.Explain("reading namespace "+metav1.NamespaceSystem+" of "+c.String(), c, err)
	}
	return ns.GetUID(), nil
}

// The layouts of an agent.
const (
	LayoutCompact = hub.LayoutCompact
	LayoutSplit   = hub.LayoutSplit
)

// checkLayout checks what belongs to the layout without a request.
func (o *Options) checkLayout() error {
	switch {
	case o.Layout != "" && o.Layout != LayoutCompact && o.Layout != LayoutSplit:
		return fleet.Misuse(fmt.Sprintf("there is no layout %q", o.Layout), "", fleet.Advice("use compact or split"))
	case o.Layout == LayoutCompact && o.Mode.IsHosted():
		return fleet.Misuse("a hosted agent has no compact layout", "the operator of its hosting cluster runs it",
			fleet.Advice("use the mode SingletonHosted for one process"))
	case o.Layout == LayoutSplit && (o.Adopt || o.NarrowRights):
		return fleet.Misuse("an agent in the split layout is neither adopted nor given narrow rights", "an operator runs it, with the usual rights",
			fleet.Advice("leave that out, or use the compact layout"))
	}
	return nil
}

// checkServed decides whether an operator of ours runs the agent: always that of a hosted one, and
// one on the cluster itself unless the agent is a process of its own, or is to be one.
func (j *join) checkServed(ctx context.Context) error {
	found, err := member.Operator(ctx, j.Spoke)
	if err != nil {
		return err
	}
	if found != nil && member.RunsOurs(found) == "operator" {
		j.operator = found
	}
	if err := j.readProcesses(ctx); err != nil {
		return err
	}
	if err := j.checkPlace(); err != nil {
		return err
	}
	if j.operator == nil || !j.isServed() {
		return nil
	}
	switch {
	case j.NarrowRights:
		return fleet.Refuse("the agent cannot have narrow rights on "+j.Spoke.String(), "the operator there runs it, with the usual rights",
			fleet.Advice("leave that out, or remove the operator"))
	case workload.ScaledDown(j.operator):
		return fleet.Refuse("the operator on "+j.Spoke.String()+" does not run", "deployment "+j.operator.Namespace+"/"+j.operator.Name+" is scaled to 0",
			workload.ScaleUp.On(j.Spoke, "namespace", j.operator.Namespace, "name", j.operator.Name))
	}
	return nil
}

// readProcesses reads in which ways of ours the agent runs on the cluster that it manages. It runs in
// both where a change of the layout was interrupted.
func (j *join) readProcesses(ctx context.Context) (err error) {
	if j.Mode.IsHosted() {
		return nil
	}
	if j.operator != nil || j.Layout == LayoutSplit {
		if j.alone, err = j.readAlone(ctx); err != nil {
			return err
		}
	}
	if !j.isServed() {
		j.served, err = j.readServed(ctx)
	}
	return err
}

// readAlone returns the Deployment of an agent that is a process of its own; nil without one.
func (j *join) readAlone(ctx context.Context) (*appsv1.Deployment, error) {
	namespace := member.NamespaceFor(j.Klusterlet)
	d, err := typed.Get[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, namespace, operatorv1.AgentDeployment(j.Klusterlet))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fleet.Explain("reading the agent", j.Spoke, err)
	case member.RunsOurs(d) != "run":
		return nil, nil
	}
	return d, nil
}

// isServed reports whether an operator of ours runs the agent, or is to.
func (j *join) isServed() bool {
	return j.Mode.IsHosted() || j.Layout == LayoutSplit || (j.operator != nil && j.alone == nil && j.Layout != LayoutCompact)
}

// checkMode refuses to move the agent of a Klusterlet to another cluster.
func (j *join) checkMode(context.Context) error {
	if j.before == nil || j.before.Klusterlet.IsHosted() == j.Mode.IsHosted() {
		return nil
	}
	mode := cmp.Or(j.before.Klusterlet.Spec.DeployOption.Mode, operatorv1.InstallModeDefault)
	return fleet.Refuse("klusterlet/"+j.Klusterlet+" of "+j.Spoke.String()+" has the mode "+string(mode), "its agent cannot move to another cluster",
		OtherKlusterlet.On(j.Spoke, "cluster", j.before.Name, "klusterlet", j.Klusterlet))
}

// place is a namespace on a cluster.
type place struct {
	on        *fleet.Cluster
	namespace string
}

// read returns the namespace; nil if there is none.
func (p place) read(ctx context.Context) (*unstructured.Unstructured, error) {
	ns, err := p.on.Client.Resource(fleet.Namespaces).Get(ctx, p.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return ns, fleet.Explain("reading namespace "+p.namespace, p.on, err)
}

// checkNamespaces refuses to take a namespace of others for a hosted agent: it is removed with the
// agent.
func (j *join) checkNamespaces(ctx context.Context) error {
	if !j.Mode.IsHosted() || j.before != nil {
		return nil
	}
	for _, at := range []place{{j.Spoke, j.namespace()}, {j.managed(), j.managedNamespace()}} {
		ns, err := at.read(ctx)
		if err != nil {
			return err
		}
		if ns != nil && ns.GetLabels()[operatorv1.LabelCreatedByKlusterlet] != j.Klusterlet {
			return fleet.Refuse("namespace "+at.namespace+" exists on "+at.on.String(), "it was not made for klusterlet/"+j.Klusterlet+", whose agent it would go with",
				fleet.Advice("choose another name for the klusterlet"))
		}
	}
	return nil
}

// namespace returns the namespace in which the agent runs.
func (j *join) namespace() string {
	switch {
	case j.Mode.IsHosted():
		return j.Klusterlet
	case j.isServed() && j.before != nil:
		return j.before.Klusterlet.AgentNamespace()
	}
	return member.NamespaceFor(j.Klusterlet)
}

// managedNamespace returns the namespace of the agent on the cluster that joins.
func (j *join) managedNamespace() string {
	switch {
	case !j.Mode.IsHosted():
		return j.namespace()
	case j.before != nil:
		return j.before.Klusterlet.ManagedNamespace()
	}
	return member.NamespaceFor(j.Klusterlet)
}

// objects returns what to apply.
func (j *join) objects(image string) ([]*unstructured.Unstructured, error) {
	o := agent.Options{
		Image: image, Klusterlet: j.Klusterlet, ClusterName: j.Name, Namespace: j.managedNamespace(), BootstrapKubeconfig: j.bootstrap,
		NarrowRights: j.NarrowRights, Spec: j.spec(),
	}
	if !j.isServed() {
		return agent.Objects(o)
	}
	o.Mode, o.ManagedKubeconfig = j.Mode, j.ManagedKubeconfig
	switch {
	case j.before != nil && j.alone == nil:
		o.Mode = cmp.Or(o.Mode, j.before.Klusterlet.Spec.DeployOption.Mode)
	case j.Layout == LayoutSplit:
		o.Mode = cmp.Or(o.Mode, operatorv1.InstallModeDefault)
	}
	return agent.Served(o)
}

// installOperator installs the operator that is to run the agent, unless there is one. It marks its
// namespace, which may be that of a hub, too.
func (j *join) installOperator(ctx context.Context, image string) ([]fleet.Change, error) {
	if !j.isServed() || j.operator != nil {
		return nil, nil
	}
	objects, err := operator.Objects(image)
	if err != nil {
		return nil, err
	}
	at := place{j.Spoke, operatorv1.NamespaceOperator}
	namespace, err := at.read(ctx)
	if err != nil {
		return nil, err
	}
	mark := fleet.Named(corev1.SchemeGroupVersion.WithKind("Namespace"), "", at.namespace)
	mark.SetLabels(map[string]string{operatorv1.LabelKlusterletOperator: fleet.FieldManager})
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == mark.GetKind() })
	var changes []fleet.Change
	if namespace == nil {
		changes, err = write.All(ctx, j.Run, j.Spoke, objects[i:i+1])
	}
	if err == nil && !j.Reads() {
		_, err = write.Merge(ctx, j.Run, j.Spoke, mark)
	}
	if err != nil {
		return changes, err
	}
	rest, err := write.All(ctx, j.Run, j.Spoke, slices.Delete(objects, i, i+1))
	return append(changes, rest...), err
}

// replaceAlone ends an agent that is a process of its own where an operator is to run it, once that
// operator runs, and waits for what takes its place. The identity of the agent and everything that
// works applied stay.
func (j *join) replaceAlone(ctx context.Context) error {
	if j.alone == nil || !j.isServed() || j.Reads() {
		return nil
	}
	j.Step("layout changed")
	if _, err := workload.Deployed(ctx, j.Run, j.Spoke, operatorv1.NamespaceOperator, member.OperatorDeployment); err != nil {
		return err
	}
	if err := workload.End(ctx, j.Run, j.Spoke, j.alone); err != nil {
		return err
	}
	for _, name := range operatorv1.AgentDeployments(j.Klusterlet, j.Mode) {
		if _, err := workload.Deployed(ctx, j.Run, j.Spoke, j.namespace(), name); err != nil {
			return err
		}
	}
	j.Done("the operator runs the agent")
	return nil
}

// processes returns the Deployments that have to start for the agent to register.
func (j *join) processes() []types.NamespacedName {
	process := types.NamespacedName{Namespace: j.namespace(), Name: operatorv1.AgentDeployment(j.Klusterlet)}
	if !j.isServed() {
		return []types.NamespacedName{process}
	}
	registers := types.NamespacedName{Namespace: j.namespace(), Name: operatorv1.AgentDeployments(j.Klusterlet, operatorv1.InstallModeDefault)[0]}
	return []types.NamespacedName{{Namespace: operatorv1.NamespaceOperator, Name: member.OperatorDeployment}, process, registers}
}
