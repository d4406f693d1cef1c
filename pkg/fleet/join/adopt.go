// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	// othersLock is the lease of an agent that runs as one process.
	othersLock = "klusterlet-agent-lock"
	// labelOLM is on what the Operator Lifecycle Manager installed, and puts back.
	labelOLM = "olm.owner"
)

var (
	rbacVersion = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	leaseKind   = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
)

// others is what another distribution of this API runs for our Klusterlet.
type others struct {
	// operator serves Klusterlets; nil when there is none, or when it is scaled to zero.
	operator *appsv1.Deployment
	// agents are the Deployments of the agent.
	agents []appsv1.Deployment
}

// readOthers looks for the operator and the agent of another distribution.
func (j *join) readOthers(ctx context.Context) (others, error) {
	var found others
	d, err := member.Operator(ctx, j.Spoke)
	if err != nil {
		return found, err
	}
	if d != nil && member.RunsOurs(d) == "" && !workload.ScaledDown(d) {
		found.operator = d
	}
	list, err := typed.List[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, j.namespace(), metav1.ListOptions{})
	if err != nil {
		return found, fleet.Explain("looking for another agent", j.Spoke, err)
	}
	names := append(operatorv1.AgentDeployments(j.Klusterlet, operatorv1.InstallModeDefault), operatorv1.AgentDeployment(j.Klusterlet))
	for _, d := range list {
		if slices.Contains(names, d.Name) && member.RunsOurs(&d) == "" {
			found.agents = append(found.agents, d)
		}
	}
	return found, nil
}

// checkOthers refuses to run two agents under one identity, and what cannot be adopted.
func (j *join) checkOthers(ctx context.Context) error {
	found, err := j.readOthers(ctx)
	if err != nil || (found.operator == nil && len(found.agents) == 0) {
		return err
	}
	j.others = &found
	first := found.operator
	if first == nil {
		first = &found.agents[0]
	}
	message := j.Spoke.String() + " has the agent of another distribution"
	cause := fmt.Sprintf("deployment %s/%s runs %s", first.Namespace, first.Name, hub.ImageOf(first))
	switch {
	case j.Mode.IsHosted():
		return fleet.Refuse("the operator of another distribution serves klusterlets on "+j.Spoke.String(), cause,
			fleet.Advice("host the agent on another cluster, or remove that operator"))
	case !j.Adopt:
		return fleet.Refuse(message, cause, Adopt.With())
	case j.before == nil:
		return fleet.Refuse(message, "there is no klusterlet/"+j.Klusterlet+" to adopt: "+cause, fleet.Advice("remove that operator, then join"))
	case strings.Contains(string(j.before.Klusterlet.Spec.DeployOption.Mode), "Hosted"):
		return fleet.Refuse(message, "klusterlet/"+j.Klusterlet+" is hosted on another cluster", fleet.Advice("change its deployOption.mode to Singleton first"))
	case first.Labels[labelOLM] != "":
		return fleet.Refuse(message, "the Operator Lifecycle Manager would start it again: "+cause,
			fleet.Advice("delete its Subscription and ClusterServiceVersion, which keeps the Klusterlet; then run the same command again"))
	}
	return j.checkOthersServe(ctx)
}

// checkOthersServe refuses to stop an operator that serves another Klusterlet, too.
func (j *join) checkOthersServe(ctx context.Context) error {
	for _, k := range j.beside {
		d, err := typed.Get[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, k.AgentNamespace(), operatorv1.AgentDeployment(k.Name))
		if err == nil && member.RunsOurs(d) != "" {
			continue
		}
		return fleet.Refuse("the operator on "+j.Spoke.String()+" serves another Klusterlet, too", "klusterlet/"+k.Name+" would be left without an agent",
			fleet.Advice("remove that Klusterlet, or leave this cluster to that operator"))
	}
	return nil
}

// stopOthers stops the other operator, which stays scaled to zero for the way back, and removes
// its agent. The Klusterlet, the secrets and everything that works applied stay.
func (j *join) stopOthers(ctx context.Context) error {
	if j.others == nil || j.Reads() {
		return nil
	}
	j.Step("other agent stopped")
	if d := j.others.operator; d != nil {
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":0}}`, d.UID)
		_, err := j.Spoke.Client.Resource(fleet.Deployments).Namespace(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: fleet.FieldManager})
		if err != nil {
			return fleet.Explain("scaling deployment "+d.Namespace+"/"+d.Name+" to zero", j.Spoke, err)
		}
		if err := workload.Await(ctx, j.Run, j.Spoke, d, func(live *appsv1.Deployment) bool {
			return live.Status.ObservedGeneration >= live.Generation && live.Status.Replicas == 0
		}); err != nil {
			return err
		}
	}
	for i := range j.others.agents {
		// Its pods go first, so that two agents never run at once.
		if err := workload.End(ctx, j.Run, j.Spoke, &j.others.agents[i]); err != nil {
			return err
		}
	}
	if err := j.dropOthersRights(ctx); err != nil {
		return err
	}
	j.Done("klusterlet/" + j.Klusterlet + " and what works applied stay")
	return nil
}

// othersRights are the rights of the other agent, whose ServiceAccount has the name of ours, and
// the lease that it held. Its operator makes them again on the way back.
func (j *join) othersRights() []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{fleet.Named(leaseKind, j.namespace(), othersLock)}
	for _, name := range agent.FormerRights() {
		name, ok := strings.CutPrefix(name, "open-cluster-management:")
		if !ok {
			continue // the role of the operator itself
		}
		name = "open-cluster-management:" + strings.Replace(name, operatorv1.DefaultKlusterletName, j.Klusterlet, 1)
		for _, kind := range []string{"ClusterRoleBinding", "ClusterRole"} {
			out = append(out, fleet.Named(rbacVersion.WithKind(kind), "", name))
		}
		for _, kind := range []string{"RoleBinding", "Role"} {
			out = append(out, fleet.Named(rbacVersion.WithKind(kind), j.namespace(), name))
		}
	}
	return out
}

// dropOthersRights removes the rights of the other agent.
func (j *join) dropOthersRights(ctx context.Context) error {
	for _, u := range j.othersRights() {
		if err := fleet.Remove(ctx, j.Spoke, u); err != nil {
			return fleet.Explain("removing "+fleet.Describe(u), j.Spoke, err)
		}
	}
	return nil
}

// plan says what happens to each object of a cluster that is taken over.
func (j *join) plan(ctx context.Context) error {
	if !j.Reads() || j.others == nil {
		return nil
	}
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment")
	if d := j.others.operator; d != nil {
		j.result.Plan = append(j.result.Plan, fleet.Planned{Object: fleet.Named(deployment, d.Namespace, d.Name), Fate: fleet.Stopped,
			Note: "scaled to zero, for the way back"})
	}
	for _, d := range j.others.agents {
		j.result.Plan = append(j.result.Plan, fleet.Planned{Object: fleet.Named(deployment, d.Namespace, d.Name), Fate: fleet.Removed})
	}
	for _, u := range j.othersRights() {
		live, err := write.Live(ctx, j.Spoke, u)
		if err != nil {
			return fleet.Explain("reading "+fleet.Describe(u), j.Spoke, err)
		}
		if live != nil {
			j.result.Plan = append(j.result.Plan, fleet.Planned{Object: u, Fate: fleet.Removed})
		}
	}
	for _, p := range fleet.PlannedOf(j.result.Items) {
		if p.Object.GetKind() == "Klusterlet" {
			p.Fate, p.Note = fleet.Kept, "labelled as ours"
		}
		j.result.Plan = append(j.result.Plan, p)
	}
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	j.result.Plan = append(j.result.Plan, fleet.Planned{Object: fleet.Named(secret, j.namespace(), operatorv1.SecretHubKubeconfig), Fate: fleet.Kept})
	works, err := fleet.ListAll(ctx, j.Spoke, fleet.Query{Resource: fleet.AppliedManifestWorks})
	if err != nil {
		return fleet.Explain("listing appliedmanifestworks", j.Spoke, err)
	}
	all := fleet.Named(fleet.AppliedManifestWorks.GroupVersion().WithKind("AppliedManifestWork"), "", "*")
	j.result.Plan = append(j.result.Plan, fleet.Planned{Object: all, Fate: fleet.Kept, Note: fleet.Many(len(works), "object") + ", with what they applied"})
	return nil
}

// awaitTakeOver waits until our agent serves the Klusterlet: it alone writes condition
// SpecSupported. What the hub says of the cluster may still be about the other agent.
func (j *join) awaitTakeOver(ctx context.Context) error {
	if j.others == nil {
		return nil
	}
	j.Step("agent takes over")
	q := await.Query{Client: j.Spoke.Client, Resource: fleet.Klusterlets, Name: j.Klusterlet, Clock: j.Given.Clock}
	err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		if len(items) == 0 {
			return false, errors.New("klusterlet/" + j.Klusterlet + " was deleted meanwhile")
		}
		conditions := fleet.ConditionsOf(items[0])
		return apimeta.FindStatusCondition(conditions, operatorv1.ConditionSpecSupported) != nil &&
			apimeta.IsStatusConditionFalse(conditions, operatorv1.ConditionHubConnectionDegraded), nil
	})
	if err != nil {
		return j.TimedOut(ctx, err, "the agent to take over", j.blocker)
	}
	j.Done("with the identity that it had")
	return nil
}
