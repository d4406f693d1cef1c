// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// record notes the record of one work, and follows it to the hub.
func (t *tracing) record(ctx context.Context, depth int, c claim) {
	spec := c.record.Spec
	step := TraceStep{Depth: depth, Kind: "AppliedManifestWork", Name: c.record.Name, On: t.o.Spoke.called(), By: managers(c.record.ManagedFields)}
	switch at := c.record.Status.EvictionStartTime; {
	case at != nil:
		step.State, step.Message = TraceEvicted, "its work is not on the hub, for "+duration.HumanDuration(max(0, t.o.Clock.Since(at.Time)))
	case c.record.DeletionTimestamp != nil:
		step.State = WorkDeleting
	case !c.owns:
		step.State, step.Message = TraceTracked, "the object is recorded and not owned: it stays when the work goes"
	}
	t.add(step)
	agent := t.agent(ctx, spec.AgentID, spec.HubHash)
	hub := t.hub(spec.HubHash)
	step = TraceStep{Depth: depth + 1, Kind: "Hub", Name: agent.server, On: "-"}
	switch {
	case hub != nil:
		step.Name, step.On = hub.Server(), hub.called()
	case step.Name == "":
		step.Name = "address with hash " + short(spec.HubHash)
	}
	if agent.cluster != "" {
		step.Message = "this cluster is " + agent.cluster + " there"
	}
	t.add(step)
	switch {
	case hub == nil:
		t.warn("no context has the address of the hub; name its context by --hub-context to see more")
	case agent.cluster == "":
		t.warn("no object on %s tells what the hub calls it; name it by -c to see more", t.o.Spoke.called())
	default:
		t.work(ctx, depth+2, hub, ref{agent.cluster, spec.ManifestWorkName})
	}
}

// ref is the namespace and name of an object.
type ref struct{ namespace, name string }

// tracedAgent is an agent of the spoke and how it knows its hub.
type tracedAgent struct {
	ids             []string
	cluster, server string
}

// agent finds the agent that made a record: by its identity, else by its hub,
// else the only one there is, where its access to the hub may not be read.
func (t *tracing) agent(ctx context.Context, id, hubHash string) tracedAgent {
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
	if t.o.Cluster != "" {
		found.cluster = t.o.Cluster
	}
	return found
}

// agentsOf reads the agents of a cluster. What may not be read is left out: a
// trace goes as far as it can.
func agentsOf(ctx context.Context, c *Cluster) []tracedAgent {
	list, err := typed.List[operatorv1.Klusterlet](ctx, c.Client, klusterlets, "", metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var out []tracedAgent
	for i := range list {
		a := tracedAgent{ids: []string{string(list[i].UID)}, cluster: list[i].Spec.ClusterName}
		j := &joined{klusterlet: &list[i]}
		secret, err := c.Client.Resource(secrets).Namespace(j.namespace()).Get(ctx, clusterv1.SecretHubKubeconfig, metav1.GetOptions{})
		if err == nil {
			if name := secretValue(secret, clusterv1.SecretKeyAgentName); name != "" {
				a.ids = append(a.ids, name)
			}
			if name := secretValue(secret, clusterv1.SecretKeyClusterName); name != "" {
				a.cluster = name
			}
			if kept, err := kubeconfig.ParseSecret(secretData(secret)); err == nil {
				a.server = kept.Server
			}
		}
		out = append(out, a)
	}
	return out
}

// hub is the hub that was named, else the candidate with the agent's address.
func (t *tracing) hub(hash string) *Cluster {
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

// failed notes that the hub could not be asked. Of a hub that was named that is
// an error.
func (t *tracing) failed(err error) {
	if t.o.Hub != nil {
		t.err = err
		return
	}
	t.warn("%s", err)
}

// work notes the work and goes on to what it comes from.
func (t *tracing) work(ctx context.Context, depth int, hub *Cluster, r ref) {
	step := TraceStep{Depth: depth, Kind: "ManifestWork", Namespace: r.namespace, Name: r.name, On: hub.called()}
	work, err := hub.Client.Resource(manifestWorks).Namespace(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		step.State, step.Message = TraceMissing, "the hub has no such work; after a time of grace the agent removes its objects"
		t.add(step)
		return
	case err != nil:
		t.failed(explain("reading manifestwork "+r.namespace+"/"+r.name, hub, err))
		return
	}
	step.By = writers(work)
	if info, err := workInfo(work); err == nil {
		step.State, step.Message = info.State, info.Message
		if step.Message == "" && info.Executor != "" {
			step.Message = "applied as ServiceAccount " + info.Executor
		}
	}
	t.add(step)
	labels := work.GetLabels()
	if namespace, name, ok := strings.Cut(labels[workv1alpha1.LabelManifestWorkReplicaSet], "."); ok {
		t.set(ctx, depth+1, hub, ref{namespace, name})
		if placement := labels[workv1alpha1.LabelPlacementName]; placement != "" {
			t.placement(ctx, depth+2, hub, r.namespace, ref{namespace, placement})
		}
		return
	}
	if addon := labels[clusterv1.LabelAddOnName]; addon != "" {
		t.add(TraceStep{Depth: depth + 1, Kind: "ManagedClusterAddOn", Namespace: r.namespace, Name: addon, On: hub.called()})
	}
	for _, owner := range work.GetOwnerReferences() {
		if owner.Kind != "ManagedClusterAddOn" || labels[clusterv1.LabelAddOnName] == "" {
			t.add(TraceStep{Depth: depth + 1, Kind: owner.Kind, Name: owner.Name, On: hub.called()})
		}
	}
}

// set notes a set of works.
func (t *tracing) set(ctx context.Context, depth int, hub *Cluster, r ref) {
	step := TraceStep{Depth: depth, Kind: "ManifestWorkReplicaSet", Namespace: r.namespace, Name: r.name, On: hub.called()}
	live := t.read(ctx, hub, replicaSets, &step)
	if live != nil {
		if set, err := typed.FromUnstructured[workv1alpha1.ManifestWorkReplicaSet](live); err == nil {
			step.Message = workSetInfo(set).Message
		}
	}
	t.add(step)
}

// placement notes the placement that a set has a work on this cluster for.
func (t *tracing) placement(ctx context.Context, depth int, hub *Cluster, cluster string, r ref) {
	step := TraceStep{Depth: depth, Kind: "Placement", Namespace: r.namespace, Name: r.name, On: hub.called()}
	if t.read(ctx, hub, placements, &step) != nil {
		selected := map[string]bool{}
		switch err := (Targets{Placement: r.namespace + "/" + r.name}).decided(ctx, hub, selected); {
		case err != nil:
			step.Message = err.Error()
		case selected[cluster]:
			step.State, step.Message = TraceSelected, many(len(selected), "cluster")+" selected"
		default:
			step.State, step.Message = TraceDropped, cluster+" is not selected any more"
		}
	}
	t.add(step)
}

// read reads the object of a step, nil where that is not possible; the step says
// why.
func (t *tracing) read(ctx context.Context, hub *Cluster, resource schema.GroupVersionResource, step *TraceStep) *unstructured.Unstructured {
	live, err := hub.Client.Resource(resource).Namespace(step.Namespace).Get(ctx, step.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		step.State = TraceMissing
		return nil
	case err != nil:
		step.Message = explain("reading it", hub, err).Error()
		return nil
	}
	step.By = writers(live)
	if live.GetDeletionTimestamp() != nil {
		step.State = WorkDeleting
	}
	return live
}

// writers are the field managers that wrote an object, the last writer first.
func writers(u *unstructured.Unstructured) []string { return managers(u.GetManagedFields()) }

// managers are those of the entries, without writers of a status alone.
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
