// SPDX-License-Identifier: Apache-2.0

package teardown

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const klusterletsDefinition = "klusterlets.operator.open-cluster-management.io"

// agentPoll is the interval of checks whether something is gone.
const agentPoll = 200 * time.Millisecond

// agentKinds are the kinds that an agent installs and that may outlive it while objects of
// them exist.
var agentKinds = []schema.GroupVersionResource{appliedWorks, clusterClaims}

// AgentOptions say which agent to remove, and how.
type AgentOptions struct {
	// Klusterlet is the name of its Klusterlet; empty means "klusterlet".
	Klusterlet string
	// Namespace is where it runs; empty means what the Klusterlet says, or the default.
	Namespace string
	// Patience is how long a running agent may take to remove itself before it is removed from
	// here; zero does not wait.
	Patience time.Duration
	// Progress receives what the removal waits for and what was done, one line each; nil is
	// silent.
	Progress func(string)
}

// Agent removes an agent from its cluster: it deletes the Klusterlet, gives the agent time to
// do its part, does that part itself if the agent does not, and waits until everything with
// the agent's label is gone. It can be repeated after any failure.
//
// AppliedManifestWorks and what they applied stay where they are: they lose the agent's
// finalizer, and their definition stays with them. When ctx ends, the error names what is
// left. A hosted agent is removed by its operator alone, which has access to the managed cluster.
func Agent(ctx context.Context, client dynamic.Interface, o AgentOptions) error {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	a := &agentRemoval{client: client, o: o, name: cmp.Or(o.Klusterlet, operatorv1.DefaultKlusterletName)}
	if err := a.deleteKlusterlet(ctx); err != nil {
		return err
	}
	return run(ctx, a.awaitAgent, a.releaseWorks, a.removeDefinitions, a.removeAddonNamespace, a.removeAddonRights, a.dropFinalizers, a.deleteRest, a.awaitGone)
}

// run runs the steps. A step that failed because of a concurrent write is repeated on newer
// state.
func run(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		err := step(ctx)
		for retries := 5; apierrors.IsConflict(err) && retries > 0; retries-- {
			err = step(ctx)
		}
		if err != nil {
			return fmt.Errorf("removing the agent: %w", err)
		}
	}
	return nil
}

// AgentItself does the same for the agent that removes itself, from namespace, because its
// Klusterlet is being deleted. Its process ends with its namespace and needs its rights until
// then, so it makes the namespace depend on the Klusterlet, and the rights on the namespace:
// once the Klusterlet has no finalizers, the garbage collector does the rest, whatever happens
// to the process. Deleting the namespace is its last write and only saves time. It can be
// repeated after any write. No loop of the agent may run meanwhile.
func AgentItself(ctx context.Context, client dynamic.Interface, k *operatorv1.Klusterlet, namespace string) error {
	a := &agentRemoval{client: client, name: k.Name, o: AgentOptions{Namespace: cmp.Or(namespace, operatorv1.NamespaceAgent)}}
	a.own = &unstructured.Unstructured{Object: map[string]any{}}
	a.own.SetName(k.Name)
	a.own.SetUID(k.UID)
	return run(ctx, a.releaseWorks, a.removeDefinitions, a.removeAddonNamespace, a.removeAddonRights, a.handOver, a.dropFinalizers, a.removeOwnNamespace)
}

// Operated removes an agent whose processes its operator has ended: everything with its label on
// one cluster, except for the finalizers of the Klusterlet k, which is being deleted, and the
// definition of klusterlets, which belongs to the operator. It can be repeated after any failure.
func Operated(ctx context.Context, client dynamic.Interface, k *operatorv1.Klusterlet, namespace string) error {
	a := &agentRemoval{client: client, name: k.Name, o: AgentOptions{Namespace: namespace}}
	a.own = &unstructured.Unstructured{Object: map[string]any{}}
	a.own.SetName(k.Name)
	a.own.SetUID(k.UID)
	return run(ctx, a.releaseWorks, a.removeDefinitions, a.removeAddonNamespace, a.removeAddonRights, a.removeNamespaces, a.removeRights)
}

// EndDeployment deletes the very Deployment with this UID so that it is gone only after its pods.
func EndDeployment(ctx context.Context, client dynamic.Interface, namespace, name string, uid types.UID) error {
	foreground := metav1.DeletePropagationForeground
	err := client.Resource(deployments).Namespace(namespace).Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &uid}})
	return failed("deleting deployment "+namespace+"/"+name, notFoundIsNil(err))
}

// agentRemoval is one removal.
type agentRemoval struct {
	client dynamic.Interface
	o      AgentOptions
	// name is that of the Klusterlet; own is nil when it is gone.
	name string
	own  *unstructured.Unstructured
	// hosted is true when there is a managed cluster to clean up.
	hosted bool
}

// isMine reports whether an object has the agent's label.
func (a *agentRemoval) isMine(u *unstructured.Unstructured) bool {
	return u.GetLabels()[operatorv1.LabelCreatedByKlusterlet] == a.name
}

// eachOfMine calls do for the objects of cluster-scoped resources that have the agent's label.
func (a *agentRemoval) eachOfMine(ctx context.Context, do func(schema.GroupVersionResource, *unstructured.Unstructured) error,
	resources ...schema.GroupVersionResource) error {
	for _, resource := range resources {
		mine, err := list(ctx, a.client, resource, "", operatorv1.LabelCreatedByKlusterlet+"="+a.name)
		if err != nil {
			return err
		}
		for _, u := range mine {
			if err := do(resource, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// patch merges the fields into the metadata of the very object that was read.
func (a *agentRemoval) patch(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, fields map[string]any) error {
	return failed("patching "+resource.Resource+" "+live.GetName(), merge(ctx, a.client.Resource(resource), live, fields))
}

func (a *agentRemoval) klusterlet(ctx context.Context) (*unstructured.Unstructured, error) {
	return get(ctx, a.client.Resource(klusterlets), a.name, "klusterlet "+a.name)
}

func (a *agentRemoval) readDefinition(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return get(ctx, a.client.Resource(definitions), name, "definition "+name)
}

func (a *agentRemoval) readNamespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return get(ctx, a.client.Resource(namespaces), name, "namespace "+name)
}

// deleteKlusterlet deletes the Klusterlet and remembers which object that was.
func (a *agentRemoval) deleteKlusterlet(ctx context.Context) (err error) {
	if a.own, err = a.klusterlet(ctx); err != nil {
		return err
	}
	if a.own == nil {
		a.o.Namespace = cmp.Or(a.o.Namespace, operatorv1.NamespaceAgent)
		return nil
	}
	k, err := typed.FromUnstructured[operatorv1.Klusterlet](a.own)
	if err != nil {
		return err
	}
	a.o.Namespace = cmp.Or(a.o.Namespace, k.AgentNamespace())
	a.hosted = slices.Contains(k.Finalizers, operatorv1.FinalizerKlusterletHosted)
	return remove(ctx, a.client, klusterlets, a.own)
}

// awaitAgent gives a running agent time to remove itself.
func (a *agentRemoval) awaitAgent(ctx context.Context) error {
	switch {
	case a.own == nil || (a.o.Patience <= 0 && !a.hosted):
		return nil
	case a.hosted:
		a.o.Progress("waiting for the operator to remove the agent from both clusters")
	default:
		a.o.Progress("waiting for the agent to remove itself")
		next, cancel := context.WithTimeoutCause(ctx, a.o.Patience, errPatience)
		defer cancel()
		ctx = next
	}
	err := wait.PollUntilContextCancel(ctx, agentPoll, true, func(ctx context.Context) (bool, error) {
		live, err := a.client.Resource(klusterlets).Get(ctx, a.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || (err == nil && live.GetUID() != a.own.GetUID()), notFoundIsNil(err)
	})
	if err != nil && a.hosted {
		return fmt.Errorf("klusterlet %s is still there, and its conditions say why: %w", a.name, err)
	}
	if errors.Is(context.Cause(ctx), errPatience) {
		a.o.Progress("the agent does not answer: removing it from outside")
		return nil
	}
	return err
}

var errPatience = errors.New("the agent did not remove itself in time")

// releaseWorks removes the finalizer from the AppliedManifestWorks of this agent or, when the
// agent is unknown, from all that no agent owns.
func (a *agentRemoval) releaseWorks(ctx context.Context) error {
	works, err := list(ctx, a.client, appliedWorks, "", "")
	if err != nil {
		return err
	}
	others := map[string]bool{}
	if a.own == nil && len(works) > 0 {
		remaining, err := list(ctx, a.client, klusterlets, "", "")
		if err != nil {
			return err
		}
		for _, k := range remaining {
			others[string(k.GetUID())] = true
		}
	}
	for _, w := range works {
		agentID, _, _ := unstructured.NestedString(w.Object, "spec", "agentID")
		if (a.own != nil && agentID != string(a.own.GetUID())) || others[agentID] {
			continue
		}
		if err := release(ctx, a.client.Resource(appliedWorks), w, workv1.FinalizerAppliedManifestWork); err != nil {
			return fmt.Errorf("patching %s %s: %w", appliedWorks.Resource, w.GetName(), err)
		}
	}
	return nil
}

// removeDefinitions deletes the definitions of kinds without objects, unless another agent needs
// them. One that only objects keep is no longer ours: it loses label and version.
func (a *agentRemoval) removeDefinitions(ctx context.Context) error {
	for _, kind := range agentKinds {
		live, err := a.readDefinition(ctx, kind.GroupResource().String())
		if err != nil {
			return err
		}
		if live == nil || !a.isMine(live) {
			continue
		}
		inherited, err := a.bequeath(ctx, definitions, live, a.heir)
		if err != nil {
			return err
		}
		if inherited {
			continue
		}
		left, err := a.client.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case err == nil && len(left.Items) > 0:
			err = a.disown(ctx, definitions, live)
		case notFoundIsNil(err) == nil:
			err = remove(ctx, a.client, definitions, live)
		default:
			err = fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeAddonNamespace deletes the namespace of add-on agents, unless another agent of this
// cluster needs it that is not being removed itself.
func (a *agentRemoval) removeAddonNamespace(ctx context.Context) error {
	live, err := a.readNamespace(ctx, operatorv1.NamespaceAgentAddOn)
	if err != nil || live == nil || !a.isMine(live) {
		return err
	}
	if inherited, err := a.bequeath(ctx, namespaces, live, a.heir); err != nil || inherited {
		return err
	}
	return a.removeNamespace(ctx, operatorv1.NamespaceAgentAddOn)
}

func (a *agentRemoval) removeOwnNamespace(ctx context.Context) error {
	return a.removeNamespace(ctx, a.o.Namespace)
}

// removeNamespace deletes a namespace that is only ours.
func (a *agentRemoval) removeNamespace(ctx context.Context, name string) error {
	live, err := a.readNamespace(ctx, name)
	switch {
	case err != nil || live == nil || !a.isMine(live):
		return err
	case live.GetLabels()[operatorv1.LabelCreatedByClusterManager] != "":
		return a.disown(ctx, namespaces, live)
	case live.GetLabels()[clusterv1.LabelClusterName] != "":
		// This cluster is a hub, too, which keeps the works of a cluster in it.
		if err := a.removeFrom(ctx, name); err != nil {
			return err
		}
		return a.disown(ctx, namespaces, live)
	}
	return remove(ctx, a.client, namespaces, live)
}

// removeFrom removes what is ours from a namespace that stays.
func (a *agentRemoval) removeFrom(ctx context.Context, namespace string) error {
	if err := a.removeMine(ctx, namespace, roleBindings, roles, serviceAccounts); err != nil {
		return err
	}
	const managed = operatorv1.SecretExternalManagedKubeconfig
	return removeNamed(ctx, a.client, secrets, namespace, operatorv1.SecretBootstrapHubKubeconfig, operatorv1.SecretHubKubeconfig,
		managed, managed+"-agent", managed+"-registration", managed+"-work")
}

// removeAddonRights removes what the agent may do in the namespace of add-ons, which may stay for another
// agent.
func (a *agentRemoval) removeAddonRights(ctx context.Context) error {
	return a.removeMine(ctx, operatorv1.NamespaceAgentAddOn, roleBindings, roles)
}

// removeMine removes the objects with the agent's label from a namespace.
func (a *agentRemoval) removeMine(ctx context.Context, namespace string, resources ...schema.GroupVersionResource) error {
	for _, resource := range resources {
		mine, err := list(ctx, a.client, resource, namespace, operatorv1.LabelCreatedByKlusterlet+"="+a.name)
		if err != nil {
			return err
		}
		for _, u := range mine {
			if err := remove(ctx, a.client, resource, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// handOver makes the agent's namespace depend on the Klusterlet, and the cluster-scoped
// objects on the namespace.
func (a *agentRemoval) handOver(ctx context.Context) error {
	namespace, err := a.readNamespace(ctx, a.o.Namespace)
	if err != nil || namespace == nil {
		return err
	}
	if a.isMine(namespace) {
		owner := reference(operatorv1.GroupVersion.String(), "Klusterlet", a.own)
		if err := a.dependOn(ctx, namespaces, namespace, owner); err != nil {
			return err
		}
	}
	owner := reference("v1", "Namespace", namespace)
	err = a.eachOfMine(ctx, func(resource schema.GroupVersionResource, u *unstructured.Unstructured) error {
		return a.dependOn(ctx, resource, u, owner)
	}, clusterRoles, clusterBindings)
	if err != nil {
		return err
	}
	definition, err := a.lastDefinition(ctx)
	if err != nil || definition == nil {
		return err
	}
	return a.dependOn(ctx, definitions, definition, owner)
}

// lastDefinition returns the definition of klusterlets, if it is ours and this is the last
// Klusterlet. If it is ours and another Klusterlet stays, that one gets it.
func (a *agentRemoval) lastDefinition(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := a.readDefinition(ctx, klusterletsDefinition)
	if err != nil || live == nil || !a.isMine(live) {
		return nil, err
	}
	if inherited, err := a.bequeath(ctx, definitions, live, a.neighbor); err != nil || inherited {
		return nil, err
	}
	return live, nil
}

func reference(apiVersion, kind string, owner *unstructured.Unstructured) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": owner.GetName(), "uid": string(owner.GetUID())}
}

// dependOn adds an owner to an object, unless it has it.
func (a *agentRemoval) dependOn(ctx context.Context, resource schema.GroupVersionResource, u *unstructured.Unstructured, owner map[string]any) error {
	owners, _, err := unstructured.NestedSlice(u.Object, "metadata", "ownerReferences")
	if err != nil {
		return fmt.Errorf("reading the owners of %s %s: %w", resource.Resource, u.GetName(), err)
	}
	for _, o := range owners {
		if m, ok := o.(map[string]any); ok && m["uid"] == owner["uid"] {
			return nil
		}
	}
	return a.patch(ctx, resource, u, map[string]any{"ownerReferences": append(owners, any(owner))})
}

// dropFinalizers removes the finalizers of the Klusterlet.
func (a *agentRemoval) dropFinalizers(ctx context.Context) error {
	if a.own == nil {
		return nil
	}
	live, err := a.klusterlet(ctx)
	if err != nil || live == nil || live.GetUID() != a.own.GetUID() {
		return err
	}
	return failed("patching klusterlets "+a.name,
		release(ctx, a.client.Resource(klusterlets), live, operatorv1.FinalizerKlusterlet, operatorv1.FinalizerKlusterletHosted))
}

// deleteRest deletes what the agent itself leaves to the garbage collector.
func (a *agentRemoval) deleteRest(ctx context.Context) error {
	if err := a.removeOwnNamespace(ctx); err != nil {
		return err
	}
	if err := a.endProcess(ctx); err != nil {
		return err
	}
	if err := a.removeRights(ctx); err != nil {
		return err
	}
	definition, err := a.lastDefinition(ctx)
	if err != nil || definition == nil {
		return err
	}
	return remove(ctx, a.client, definitions, definition)
}

// endProcess deletes the agent's Deployment from a namespace that is going. Kubernetes looks at a
// namespace five seconds after its deletion, and again only after as long if a pod still runs.
func (a *agentRemoval) endProcess(ctx context.Context) error {
	live, err := a.readNamespace(ctx, a.o.Namespace)
	if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
		return err
	}
	return removeNamed(ctx, a.client, deployments, a.o.Namespace, operatorv1.AgentDeployment(a.name))
}

// removeNamespaces deletes the namespaces that are only ours: that of the agent, and those that it
// ran in before.
func (a *agentRemoval) removeNamespaces(ctx context.Context) error {
	return a.eachOfMine(ctx, func(_ schema.GroupVersionResource, u *unstructured.Unstructured) error {
		return a.removeNamespace(ctx, u.GetName())
	}, namespaces)
}

func (a *agentRemoval) removeRights(ctx context.Context) error {
	return a.eachOfMine(ctx, func(resource schema.GroupVersionResource, u *unstructured.Unstructured) error {
		return remove(ctx, a.client, resource, u)
	}, clusterBindings, clusterRoles)
}

// awaitGone waits until nothing has the agent's label.
func (a *agentRemoval) awaitGone(ctx context.Context) error {
	var lastLeft string
	err := wait.PollUntilContextCancel(ctx, agentPoll, true, func(ctx context.Context) (bool, error) {
		var left []string
		err := a.eachOfMine(ctx, func(resource schema.GroupVersionResource, u *unstructured.Unstructured) error {
			left = append(left, strings.TrimSuffix(resource.Resource, "s")+" "+u.GetName())
			return nil
		}, namespaces, clusterRoles, clusterBindings, definitions)
		if err != nil {
			return false, err
		}
		if now := strings.Join(left, ", "); now != lastLeft {
			lastLeft = now
			if now != "" {
				a.o.Progress("waiting until gone: " + now)
			}
		}
		return len(left) == 0, nil
	})
	if err != nil && lastLeft != "" {
		return fmt.Errorf("still there: %s: %w", lastLeft, err)
	}
	return err
}
