// SPDX-License-Identifier: Apache-2.0

package teardown

import (
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
	"k8s.io/client-go/dynamic"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var (
	agentNamespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	agentDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	agentRoles       = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	agentBindings    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	klusterlets      = schema.GroupVersionResource{Group: operatorv1.GroupVersion.Group, Version: "v1", Resource: "klusterlets"}
	appliedWorks     = schema.GroupVersionResource{Group: workv1.GroupVersion.Group, Version: "v1", Resource: "appliedmanifestworks"}
	clusterClaims    = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1alpha1", Resource: "clusterclaims"}
)

const (
	klusterletsDefinition = "klusterlets.operator.open-cluster-management.io"
	// agentPoll is the interval of checks whether something is gone.
	agentPoll = 200 * time.Millisecond
)

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
// left.
func Agent(ctx context.Context, client dynamic.Interface, o AgentOptions) error {
	if o.Klusterlet == "" {
		o.Klusterlet = operatorv1.DefaultKlusterletName
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	a := &agentRemoval{client: client, o: o}
	if err := a.deleteKlusterlet(ctx); err != nil {
		return err
	}
	return run(ctx, a.awaitAgent, a.prepare, a.dropFinalizers, a.deleteRest, a.awaitGone)
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
	a := &agentRemoval{client: client, o: AgentOptions{Klusterlet: k.Name, Namespace: namespace, Progress: func(string) {}}}
	a.own = &unstructured.Unstructured{Object: map[string]any{}}
	a.own.SetName(k.Name)
	a.own.SetUID(k.UID)
	return run(ctx, a.prepare, a.handOver, a.dropFinalizers, a.removeOwnNamespace)
}

// agentRemoval is one removal.
type agentRemoval struct {
	client dynamic.Interface
	o      AgentOptions
	// own is the Klusterlet; nil when it is gone.
	own *unstructured.Unstructured
}

func (a *agentRemoval) namespace() string {
	if a.o.Namespace != "" {
		return a.o.Namespace
	}
	if a.own != nil {
		if ns, _, _ := unstructured.NestedString(a.own.Object, "spec", "namespace"); ns != "" {
			return ns
		}
	}
	return operatorv1.NamespaceAgent
}

func (a *agentRemoval) mine() string {
	return operatorv1.LabelCreatedByKlusterlet + "=" + a.o.Klusterlet
}

// deleteKlusterlet deletes the Klusterlet and remembers which object that was.
func (a *agentRemoval) deleteKlusterlet(ctx context.Context) error {
	live, err := a.client.Resource(klusterlets).Get(ctx, a.o.Klusterlet, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading klusterlet %s: %w", a.o.Klusterlet, err)
	}
	a.own = live
	return reconcile.Delete(ctx, a.client, reconcile.Target{Resource: klusterlets, Name: a.o.Klusterlet, UID: live.GetUID()})
}

// awaitAgent gives a running agent time to remove itself.
func (a *agentRemoval) awaitAgent(ctx context.Context) error {
	if a.own == nil || a.o.Patience <= 0 {
		return nil
	}
	a.o.Progress("waiting for the agent to remove itself")
	ctx, cancel := context.WithTimeoutCause(ctx, a.o.Patience, errPatience)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		live, err := a.client.Resource(klusterlets).Get(ctx, a.o.Klusterlet, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || (err == nil && live.GetUID() != a.own.GetUID()), notFoundIsNil(err)
	})
	if errors.Is(context.Cause(ctx), errPatience) {
		a.o.Progress("the agent does not answer: removing it from outside")
		return nil
	}
	return err
}

var errPatience = errors.New("the agent did not remove itself in time")

// prepare does what must be done before the agent's own objects may be deleted.
func (a *agentRemoval) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{a.releaseWorks, a.removeDefinitions, a.removeAddonNamespace} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// releaseWorks removes the finalizer from the AppliedManifestWorks of this agent or, when the
// agent is unknown, from all that no agent owns.
func (a *agentRemoval) releaseWorks(ctx context.Context) error {
	works, err := list(ctx, a.client, appliedWorks, metav1.ListOptions{})
	if err != nil {
		return err
	}
	others := map[string]bool{}
	if a.own == nil && len(works) > 0 {
		remaining, err := list(ctx, a.client, klusterlets, metav1.ListOptions{})
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
		kept := slices.DeleteFunc(slices.Clone(w.GetFinalizers()), func(f string) bool { return f == workv1.FinalizerAppliedManifestWork })
		if len(kept) == len(w.GetFinalizers()) {
			continue
		}
		if err := patchMetadata(ctx, a.client, appliedWorks, w, map[string]any{"finalizers": kept}); err != nil {
			return err
		}
	}
	return nil
}

// removeDefinitions deletes the definitions of kinds without objects. One that stays is no
// longer ours: it loses label and version.
func (a *agentRemoval) removeDefinitions(ctx context.Context) error {
	for _, kind := range agentKinds {
		name := kind.Resource + "." + kind.Group
		live, err := a.client.Resource(agentDefinitions).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading definition %s: %w", name, err)
		}
		if live.GetLabels()[operatorv1.LabelCreatedByKlusterlet] != a.o.Klusterlet {
			continue
		}
		heir, err := a.heir(ctx)
		if err != nil {
			return err
		}
		if heir != "" {
			if err := a.bequeath(ctx, agentDefinitions, live, heir); err != nil {
				return err
			}
			continue
		}
		left, err := a.client.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		if err == nil && len(left.Items) > 0 {
			err = a.disown(ctx, agentDefinitions, live)
		} else {
			err = reconcile.Delete(ctx, a.client, reconcile.Target{Resource: agentDefinitions, Name: name, UID: live.GetUID()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// heir returns another Klusterlet of this cluster that is not being deleted; empty without one.
// Its agent needs what all agents share: the definitions, whose objects would go with them, and
// the namespace of add-ons.
func (a *agentRemoval) heir(ctx context.Context) (string, error) {
	remaining, err := list(ctx, a.client, klusterlets, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, k := range remaining {
		if k.GetName() != a.o.Klusterlet && k.GetDeletionTimestamp() == nil {
			return k.GetName(), nil
		}
	}
	return "", nil
}

// bequeath labels an object that all agents share as another Klusterlet's.
func (a *agentRemoval) bequeath(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, heir string) error {
	return patchMetadata(ctx, a.client, resource, live, map[string]any{"labels": map[string]any{operatorv1.LabelCreatedByKlusterlet: heir}})
}

// disown removes our label and version from an object that stays.
func (a *agentRemoval) disown(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured) error {
	return patchMetadata(ctx, a.client, resource, live, map[string]any{
		"labels":      map[string]any{operatorv1.LabelCreatedByKlusterlet: nil, operatorv1.LabelKlusterlet: nil},
		"annotations": map[string]any{operatorv1.AnnotationVersion: nil},
	})
}

// removeAddonNamespace deletes the namespace of add-on agents, unless another agent of this
// cluster needs it that is not being removed itself.
func (a *agentRemoval) removeAddonNamespace(ctx context.Context) error {
	agents, err := list(ctx, a.client, agentNamespaces, metav1.ListOptions{LabelSelector: operatorv1.LabelKlusterlet})
	if err != nil {
		return err
	}
	declared, err := list(ctx, a.client, klusterlets, metav1.ListOptions{})
	if err != nil {
		return err
	}
	leaving := map[string]bool{}
	for _, k := range declared {
		leaving[k.GetName()] = k.GetDeletionTimestamp() != nil
	}
	for _, ns := range agents {
		// The Klusterlet of a hosted agent is on another cluster.
		if other := ns.GetLabels()[operatorv1.LabelKlusterlet]; ns.GetName() != a.namespace() && ns.GetDeletionTimestamp() == nil && !leaving[other] {
			return a.bequeathNamespace(ctx, other)
		}
	}
	return a.removeNamespace(ctx, operatorv1.NamespaceAgentAddOn)
}

// bequeathNamespace labels the namespace of add-on agents as another Klusterlet's, if it is
// labelled as ours.
func (a *agentRemoval) bequeathNamespace(ctx context.Context, heir string) error {
	live, err := a.client.Resource(agentNamespaces).Get(ctx, operatorv1.NamespaceAgentAddOn, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s: %w", operatorv1.NamespaceAgentAddOn, err)
	}
	if live.GetLabels()[operatorv1.LabelCreatedByKlusterlet] != a.o.Klusterlet {
		return nil
	}
	return a.bequeath(ctx, agentNamespaces, live, heir)
}

func (a *agentRemoval) removeOwnNamespace(ctx context.Context) error {
	return a.removeNamespace(ctx, a.namespace())
}

// removeNamespace deletes a namespace that is only ours.
func (a *agentRemoval) removeNamespace(ctx context.Context, name string) error {
	live, err := a.client.Resource(agentNamespaces).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	switch {
	case live.GetLabels()[operatorv1.LabelCreatedByKlusterlet] != a.o.Klusterlet:
		return nil
	case live.GetLabels()[operatorv1.LabelCreatedByClusterManager] != "":
		return a.disown(ctx, agentNamespaces, live)
	}
	return reconcile.Delete(ctx, a.client, reconcile.Target{Resource: agentNamespaces, Name: name, UID: live.GetUID()})
}

// handOver makes the agent's namespace depend on the Klusterlet, and the cluster-scoped
// objects on the namespace.
func (a *agentRemoval) handOver(ctx context.Context) error {
	namespace, err := a.client.Resource(agentNamespaces).Get(ctx, a.namespace(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s: %w", a.namespace(), err)
	}
	if namespace.GetLabels()[operatorv1.LabelCreatedByKlusterlet] == a.o.Klusterlet {
		owner := reference(operatorv1.GroupVersion.String(), "Klusterlet", a.o.Klusterlet, a.own.GetUID())
		if err := a.dependOn(ctx, agentNamespaces, namespace, owner); err != nil {
			return err
		}
	}
	owner := reference("v1", "Namespace", namespace.GetName(), namespace.GetUID())
	for _, resource := range []schema.GroupVersionResource{agentRoles, agentBindings} {
		objects, err := list(ctx, a.client, resource, metav1.ListOptions{LabelSelector: a.mine()})
		if err != nil {
			return err
		}
		for _, u := range objects {
			if err := a.dependOn(ctx, resource, u, owner); err != nil {
				return err
			}
		}
	}
	definition, err := a.lastDefinition(ctx)
	if err != nil || definition == nil {
		return err
	}
	return a.dependOn(ctx, agentDefinitions, definition, owner)
}

// lastDefinition returns the definition of klusterlets, if it is ours and this is the last
// Klusterlet. If it is ours and another Klusterlet stays, that one gets it.
func (a *agentRemoval) lastDefinition(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := a.client.Resource(agentDefinitions).Get(ctx, klusterletsDefinition, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading definition %s: %w", klusterletsDefinition, err)
	}
	if live.GetLabels()[operatorv1.LabelCreatedByKlusterlet] != a.o.Klusterlet {
		return nil, nil
	}
	left, err := list(ctx, a.client, klusterlets, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, k := range left {
		if k.GetName() != a.o.Klusterlet {
			return nil, a.bequeath(ctx, agentDefinitions, live, k.GetName())
		}
	}
	return live, nil
}

func reference(apiVersion, kind, name string, uid types.UID) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": string(uid)}
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
	return patchMetadata(ctx, a.client, resource, u, map[string]any{"ownerReferences": append(owners, any(owner))})
}

// dropFinalizers removes the finalizers of the Klusterlet.
func (a *agentRemoval) dropFinalizers(ctx context.Context) error {
	if a.own == nil {
		return nil
	}
	live, err := a.client.Resource(klusterlets).Get(ctx, a.o.Klusterlet, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && live.GetUID() != a.own.GetUID()) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading klusterlet %s: %w", a.o.Klusterlet, err)
	}
	kept := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool {
		return f == operatorv1.FinalizerKlusterlet || f == operatorv1.FinalizerKlusterletHosted
	})
	if len(kept) == len(live.GetFinalizers()) {
		return nil
	}
	return patchMetadata(ctx, a.client, klusterlets, live, map[string]any{"finalizers": kept})
}

// deleteRest deletes what the agent itself leaves to the garbage collector.
func (a *agentRemoval) deleteRest(ctx context.Context) error {
	if err := a.removeOwnNamespace(ctx); err != nil {
		return err
	}
	for _, resource := range []schema.GroupVersionResource{agentBindings, agentRoles} {
		objects, err := list(ctx, a.client, resource, metav1.ListOptions{LabelSelector: a.mine()})
		if err != nil {
			return err
		}
		for _, u := range objects {
			if err := reconcile.Delete(ctx, a.client, reconcile.Target{Resource: resource, Name: u.GetName(), UID: u.GetUID()}); err != nil {
				return err
			}
		}
	}
	definition, err := a.lastDefinition(ctx)
	if err != nil || definition == nil {
		return err
	}
	return reconcile.Delete(ctx, a.client, reconcile.Target{Resource: agentDefinitions, Name: klusterletsDefinition, UID: definition.GetUID()})
}

// awaitGone waits until nothing has the agent's label.
func (a *agentRemoval) awaitGone(ctx context.Context) error {
	var lastLeft string
	err := poll(ctx, func() (bool, error) {
		left, err := a.leftovers(ctx)
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

func (a *agentRemoval) leftovers(ctx context.Context) ([]string, error) {
	var out []string
	for _, resource := range []schema.GroupVersionResource{agentNamespaces, agentRoles, agentBindings, agentDefinitions} {
		objects, err := list(ctx, a.client, resource, metav1.ListOptions{LabelSelector: a.mine()})
		if err != nil {
			return nil, err
		}
		for _, u := range objects {
			out = append(out, strings.TrimSuffix(resource.Resource, "s")+" "+u.GetName())
		}
	}
	return out, nil
}
