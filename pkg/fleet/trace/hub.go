// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// addRecord adds the AppliedManifestWork of one work, and follows it to the hub.
func (t *tracing) addRecord(ctx context.Context, depth int, c claim) {
	spec := c.record.Spec
	step := Step{Depth: depth, Kind: "AppliedManifestWork", Name: c.record.Name, On: t.o.Spoke.Called(), By: managers(c.record.ManagedFields)}
	switch at := c.record.Status.EvictionStartTime; {
	case at != nil:
		step.State, step.Message = Evicted, "its work is not on the hub, for "+duration.HumanDuration(max(0, t.o.Clock.Since(at.Time)))
	case c.record.DeletionTimestamp != nil:
		step.State = work.Deleting
	case !c.owns:
		step.State, step.Message = Tracked, "the object is recorded but not owned: it stays when the work is deleted"
	}
	t.add(step)
	agent := t.agentFor(ctx, spec.AgentID, spec.HubHash)
	hub := t.hubFor(spec.HubHash)
	step = Step{Depth: depth + 1, Kind: "Hub", Name: agent.server, On: "-"}
	switch {
	case hub != nil:
		step.Name, step.On = hub.Server(), hub.Called()
	case step.Name == "":
		step.Name = "address with hash " + trust.ShortHash(spec.HubHash)
	}
	if agent.cluster != "" {
		step.Message = "this cluster is " + agent.cluster + " there"
	}
	t.add(step)
	switch {
	case hub == nil:
		t.addWarning(fleet.Note{Text: "no context has the address of the hub", Fix: NameHub.With()})
	case agent.cluster == "":
		t.addWarning(fleet.Note{Text: fmt.Sprintf("no object on %s contains its name on the hub", t.o.Spoke.Called()), Fix: NameCluster.With()})
	default:
		t.addWork(ctx, depth+2, hub, ref{agent.cluster, spec.ManifestWorkName})
	}
}

// ref is the namespace and name of an object.
type ref struct{ namespace, name string }

// tracedAgent is an agent of the spoke and its access to the hub.
type tracedAgent struct {
	ids             []string
	cluster, server string
}

// agentFor returns the agent that made a record: by its identity, else by its hub, else the only
// one there is, when its access to the hub may not be read.
func (t *tracing) agentFor(ctx context.Context, id, hubHash string) tracedAgent {
	if !t.asked {
		t.agents, t.asked = agentsOf(ctx, t.o.Spoke), true
	}
	var found tracedAgent
	for _, is := range []func(tracedAgent) bool{
		func(a tracedAgent) bool { return id != "" && slices.Contains(a.ids, id) },
		func(a tracedAgent) bool { return kubeconfig.HubHash(a.server) == hubHash },
		func(a tracedAgent) bool { return len(t.agents) == 1 && a.server == "" },
	} {
		if i := slices.IndexFunc(t.agents, is); i >= 0 {
			found = t.agents[i]
			break
		}
	}
	if kubeconfig.HubHash(found.server) != hubHash {
		found.server = "" // the record is of another address than the agent uses now
	}
	found.cluster = cmp.Or(t.o.Cluster, found.cluster)
	return found
}

// agentsOf reads the agents of a cluster. What may not be read is left out: a trace goes as
// far as it can.
func agentsOf(ctx context.Context, c *fleet.Cluster) []tracedAgent {
	list, err := typed.List[operatorv1.Klusterlet](ctx, c.Client, fleet.Klusterlets, "", metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var out []tracedAgent
	for i := range list {
		a := tracedAgent{ids: []string{string(list[i].UID)}, cluster: list[i].Spec.ClusterName}
		if secret, err := typed.Get[corev1.Secret](ctx, c.Client, fleet.Secrets, list[i].AgentNamespace(), clusterv1.SecretHubKubeconfig); err == nil {
			if name := string(secret.Data[clusterv1.SecretKeyAgentName]); name != "" {
				a.ids = append(a.ids, name)
			}
			a.cluster = cmp.Or(string(secret.Data[clusterv1.SecretKeyClusterName]), a.cluster)
			if kept, err := kubeconfig.ParseSecret(secret.Data); err == nil {
				a.server = kept.Server
			}
		}
		out = append(out, a)
	}
	return out
}

// hubFor returns the hub that was given, else the candidate with the agent's address.
func (t *tracing) hubFor(hash string) *fleet.Cluster {
	if t.o.Hub != nil {
		return t.o.Hub
	}
	for _, c := range t.o.Candidates {
		if kubeconfig.HubHash(c.Server()) == hash {
			return c
		}
	}
	return nil
}

// addWork adds the work and goes on to what it comes from.
func (t *tracing) addWork(ctx context.Context, depth int, hub *fleet.Cluster, r ref) {
	step := Step{Depth: depth, Kind: "ManifestWork", Namespace: r.namespace, Name: r.name, On: hub.Called()}
	found, err := hub.Client.Resource(fleet.ManifestWorks).Namespace(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		step.State, step.Message = Missing, "the hub has no such work; after a grace period the agent removes its objects"
		t.add(step)
		return
	case err != nil:
		err = fleet.Explain("reading manifestwork "+r.namespace+"/"+r.name, hub, err)
		if t.o.Hub != nil {
			t.err = err // of a hub that was given
			return
		}
		t.addWarning(fleet.Note{Text: err.Error()})
		return
	}
	step.By = writers(found)
	if info, err := work.InfoOf(found); err == nil {
		step.State, step.Message = info.State, info.Message
		if step.Message == "" && info.Executor != "" {
			step.Message = "applied as ServiceAccount " + info.Executor
		}
	}
	t.add(step)
	labels := found.GetLabels()
	if namespace, name, ok := strings.Cut(labels[workv1alpha1.LabelManifestWorkReplicaSet], "."); ok {
		t.addSet(ctx, depth+1, hub, ref{namespace, name})
		if placement := labels[workv1alpha1.LabelPlacementName]; placement != "" {
			t.addPlacement(ctx, depth+2, hub, r.namespace, ref{namespace, placement})
		}
		return
	}
	if addon := labels[clusterv1.LabelAddOnName]; addon != "" {
		t.add(Step{Depth: depth + 1, Kind: "ManagedClusterAddOn", Namespace: r.namespace, Name: addon, On: hub.Called()})
	}
	for _, owner := range found.GetOwnerReferences() {
		if owner.Kind != "ManagedClusterAddOn" || labels[clusterv1.LabelAddOnName] == "" {
			t.add(Step{Depth: depth + 1, Kind: owner.Kind, Name: owner.Name, On: hub.Called()})
		}
	}
}

// addSet adds a set of works.
func (t *tracing) addSet(ctx context.Context, depth int, hub *fleet.Cluster, r ref) {
	step := Step{Depth: depth, Kind: "ManifestWorkReplicaSet", Namespace: r.namespace, Name: r.name, On: hub.Called()}
	if live := t.readStep(ctx, hub, fleet.ReplicaSets, &step); live != nil {
		if set, err := typed.FromUnstructured[workv1alpha1.ManifestWorkReplicaSet](live); err == nil {
			step.Message = work.SetInfoOf(set).Message
		}
	}
	t.add(step)
}

// addPlacement adds the placement that gives a set a work on this cluster.
func (t *tracing) addPlacement(ctx context.Context, depth int, hub *fleet.Cluster, name string, r ref) {
	step := Step{Depth: depth, Kind: "Placement", Namespace: r.namespace, Name: r.name, On: hub.Called()}
	if t.readStep(ctx, hub, fleet.Placements, &step) != nil {
		selected := map[string]bool{}
		switch err := (cluster.Targets{Placement: r.namespace + "/" + r.name}).Decided(ctx, hub, selected); {
		case err != nil:
			step.Message = err.Error()
		case selected[name]:
			step.State, step.Message = Selected, fleet.Many(len(selected), "cluster")+" selected"
		default:
			step.State, step.Message = Dropped, name+" is not selected any more"
		}
	}
	t.add(step)
}

// readStep reads the object of a step; nil when that is not possible, in which case the step says
// why.
func (t *tracing) readStep(ctx context.Context, hub *fleet.Cluster, resource schema.GroupVersionResource, step *Step) *unstructured.Unstructured {
	live, err := hub.Client.Resource(resource).Namespace(step.Namespace).Get(ctx, step.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		step.State = Missing
		return nil
	case err != nil:
		step.Message = fleet.Explain("reading it", hub, err).Error()
		return nil
	}
	step.By = writers(live)
	if live.GetDeletionTimestamp() != nil {
		step.State = work.Deleting
	}
	return live
}

// writers returns the field managers of an object, the last writer first.
func writers(u *unstructured.Unstructured) []string { return managers(u.GetManagedFields()) }

// managers returns the field managers of the entries, without those that only wrote the
// status.
func managers(entries []metav1.ManagedFieldsEntry) []string {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		if a.Time == nil || b.Time == nil {
			return 0
		}
		return b.Time.Compare(a.Time.Time)
	})
	var out []string
	for _, e := range entries {
		if e.Subresource == "" && !slices.Contains(out, e.Manager) {
			out = append(out, e.Manager)
		}
	}
	return out
}
