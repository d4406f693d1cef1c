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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// hubPoll is the interval of checks whether something is gone.
const hubPoll = 250 * time.Millisecond

// HubOptions say which hub to remove, and how.
type HubOptions struct {
	// Patience is how long to wait for one thing, while a hub process runs, before the error
	// says what is missing; zero waits until ctx ends.
	Patience time.Duration
	// Force ends the hub process first, and removes the finalizer of an agent that is away
	// from its works. Without it such an agent keeps the hub from being removed.
	Force bool
	// KeepAPIs leaves the definitions with all objects of users in place, and removes only what would
	// need a hub: admission, the rights of agents, the hub itself. A removal that has begun so, or of a
	// hub whose definitions say so (KeptAPIs), goes on so.
	KeepAPIs bool
	// AgentPatience is how long, with Force, agents may take to confirm that they keep what
	// works applied before those that are away are skipped; zero means 30 s.
	AgentPatience time.Duration
	// Clock decides whether an agent is away; nil is the system's.
	Clock clock.PassiveClock
	// Progress receives what the removal waits for, one line each; nil is silent.
	Progress func(string)
}

// ErrHubBusy means that something that must be deleted first is not; the error's text names
// it.
var ErrHubBusy = errors.New("the hub still holds something")

// Hub removes a hub with everything that the installer and the hub process made. A running hub
// process does its part itself; if none runs, or it ends meanwhile, the same steps are done
// here. It can be repeated after any failure. Unless the APIs are kept, it deletes all
// ManagedClusters: the caller must have confirmed that.
//
// What works applied stays on the managed clusters, and so do add-ons: see Keep, whose result
// and error Hub returns too. It waits for objects that another program holds by a finalizer.
func Hub(ctx context.Context, client dynamic.Interface, o HubOptions) ([]KeptCluster, error) {
	h := newHubRemoval(client, o)
	err := h.run(ctx)
	if errors.Is(err, ErrNotKept) {
		err = errors.Join(err, h.keeper.undo(ctx))
	}
	return h.keeper.result(), failed("removing the hub", err)
}

// run runs rounds until there is nothing left to wait for.
func (h *hubRemoval) run(ctx context.Context) error {
	var waited time.Duration
	said, faults := "", 0
	for {
		waiting, err := h.round(ctx)
		switch {
		case err != nil && isTransient(err) && faults < maxFaults:
			faults++
		case err != nil || waiting == "":
			return err
		default:
			faults = 0
		}
		if waiting != "" && waiting != said {
			h.o.Progress("waiting for " + waiting)
			said, waited = waiting, 0
		}
		h.tired = waited >= h.o.AgentPatience
		if h.o.Patience > 0 && waited >= h.o.Patience {
			return fmt.Errorf("%w: %s", ErrHubBusy, said)
		}
		if err := sleep(ctx, hubPoll); err != nil {
			return fmt.Errorf("waiting for %s: %w", said, err)
		}
		waited += hubPoll
	}
}

// maxFaults is how many rounds in a row may meet another writer or a busy API server.
const maxFaults = 40

// isTransient reports whether every fault may be gone on another attempt: a conflict, or a busy
// API server.
func isTransient(err error) bool {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return !slices.ContainsFunc(several.Unwrap(), func(e error) bool { return !isTransient(e) })
	}
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// round goes as far as it can and returns what it has to wait for.
func (h *hubRemoval) round(ctx context.Context) (string, error) {
	if h.o.Force {
		// The ClusterManager comes last, so that a hub whose works cannot be made harmless
		// runs again once it is reinstalled.
		if waiting, err := inOrder(ctx, h.markAPIs, h.stopProcess, h.harmless); waiting != "" || err != nil {
			return waiting, err
		}
	}
	present, reason, err := h.deleteClusterManager(ctx)
	if err != nil {
		return "", err
	}
	busy, err := h.isBusy(ctx)
	if err != nil {
		return "", err
	}
	if present && busy {
		h.withdrawn = 0
		return reason, nil
	}
	if waiting, err := inOrder(ctx, h.instances, h.made); waiting != "" || err != nil {
		return waiting, err
	}
	if present {
		if err := h.dropFinalizers(ctx, clusterManagers, "", operatorv1.DefaultClusterManagerName, operatorv1.FinalizerClusterManager); err != nil {
			return "", err
		}
	}
	return h.installed(ctx)
}

// harmless keeps agents from removing what works applied, before anything is deleted. Where works
// stay, there is nothing to do.
func (h *hubRemoval) harmless(ctx context.Context) (string, error) {
	keep, err := h.keepsAPIs(ctx)
	switch {
	case err != nil:
		return "", err
	case keep:
		return h.disownAPIs(ctx)
	}
	return inOrder(ctx, h.admission, h.keeper.round)
}

// stopProcess ends the hub process, so that no loop recreates what is deleted.
func (h *hubRemoval) stopProcess(ctx context.Context) (string, error) {
	if err := removeNamed(ctx, h.client, deployments, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName); err != nil {
		return "", err
	}
	var left []*unstructured.Unstructured
	for pod, err := range objects(ctx, h.client.Resource(pods).Namespace(operatorv1.NamespaceOperator), hubPodLabel) {
		if err != nil {
			return "", fmt.Errorf("listing the pods of the hub: %w", err)
		}
		left = append(left, pod)
	}
	return describeObjects("pods of the hub", left), nil
}

// hubPodLabel is on the pods of the hub process.
const hubPodLabel = "app=cluster-manager"

// deleteClusterManager deletes the ClusterManager; it returns whether the object still exists,
// and what the hub process waits for, as it reports.
func (h *hubRemoval) deleteClusterManager(ctx context.Context) (present bool, reason string, err error) {
	name := operatorv1.DefaultClusterManagerName
	if err := removeNamed(ctx, h.client, clusterManagers, "", name); err != nil {
		return false, "", err
	}
	live, err := get(ctx, h.client.Resource(clusterManagers), name, "clustermanager "+name)
	if err != nil || live == nil {
		return false, "", err
	}
	cm, err := typed.FromUnstructured[operatorv1.ClusterManager](live)
	if err == nil { // the reason is a courtesy
		c := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionProgressing)
		if c != nil && c.Status == metav1.ConditionTrue {
			return true, "the hub process: " + c.Message, nil
		}
	}
	return true, "the hub process to remove what it made", nil
}

// isBusy reports whether a hub process works, because its Deployment has an available replica,
// and has more to do than to wait for the namespace of its certificates, which it deletes last.
func (h *hubRemoval) isBusy(ctx context.Context) (bool, error) {
	ns, err := get(ctx, h.client.Resource(namespaces), operatorv1.NamespaceHub, "namespace "+operatorv1.NamespaceHub)
	if err != nil {
		return false, err
	}
	if ns != nil && ns.GetDeletionTimestamp() != nil {
		if live, err := h.clustersAPI(ctx); err != nil || live == nil {
			return false, err
		}
	}
	api := h.client.Resource(deployments).Namespace(operatorv1.NamespaceOperator)
	d, err := get(ctx, api, operatorv1.DefaultClusterManagerName, "the hub's deployment")
	return d != nil && d.GetDeletionTimestamp() == nil && number(d.Object, "status", "availableReplicas") > 0, err
}

// hubInventory is what an installer applies, in the order of its removal: the process first,
// its rights last.
var hubInventory = []struct {
	resource   schema.GroupVersionResource
	namespaces []string
}{
	{deployments, []string{operatorv1.NamespaceOperator}},
	{services, []string{operatorv1.NamespaceOperator}},
	{secrets, []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub}},
	{configMaps, []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub, metav1.NamespacePublic}},
	{roleBindings, []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub, metav1.NamespacePublic}},
	{roles, []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub, metav1.NamespacePublic}},
	{serviceAccounts, []string{operatorv1.NamespaceOperator}},
	{clusterBindings, []string{""}},
	{clusterRoles, []string{""}},
	{definitions, []string{""}},
}

// installed removes what the installer applied, found by its label, and then the namespaces;
// it returns what it waits for.
func (h *hubRemoval) installed(ctx context.Context) (string, error) {
	selector := operatorv1.LabelCreatedByClusterManager + "=" + operatorv1.DefaultClusterManagerName
	var errs []error
	for _, kind := range hubInventory {
		for _, namespace := range kind.namespaces {
			found, err := list(ctx, h.client, kind.resource, namespace, selector)
			errs = append(errs, err)
			for _, u := range found {
				errs = append(errs, remove(ctx, h.client, kind.resource, u))
			}
		}
	}
	errs = append(errs, removeNamed(ctx, h.client, leases, operatorv1.NamespaceOperator, hubLock))
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return h.namespacesGone(ctx)
}

// hubLock is the lease for leader election of hub processes.
const hubLock = "clustermanager-lock"

// namespacesGone removes the two namespaces, both at once because Kubernetes takes seconds for each,
// unless one has another owner, because a hub that manages itself shares one with its agent, or has
// objects of users that are kept. It returns what it waits for, including definitions that are still
// being deleted.
func (h *hubRemoval) namespacesGone(ctx context.Context) (string, error) {
	waiting := ""
	for _, name := range []string{operatorv1.NamespaceHub, operatorv1.NamespaceOperator} {
		going, err := h.namespaceGone(ctx, name)
		if err != nil {
			return "", err
		}
		waiting = cmp.Or(waiting, going)
	}
	live, err := get(ctx, h.client.Resource(definitions), "clustermanagers."+operatorv1.GroupName, "definition clustermanagers")
	if err != nil || live == nil || waiting != "" {
		return waiting, err
	}
	return "API " + live.GetName() + " to go", nil
}

// namespaceGone removes one namespace of the hub, or disowns it when it has another owner too, or
// objects of users that are kept; it returns what it waits for.
func (h *hubRemoval) namespaceGone(ctx context.Context, name string) (string, error) {
	live, err := get(ctx, h.client.Resource(namespaces), name, "namespace "+name)
	if err != nil || live == nil || live.GetLabels()[operatorv1.LabelCreatedByClusterManager] != operatorv1.DefaultClusterManagerName {
		return "", err
	}
	held, err := h.holdsKept(ctx, name)
	if err != nil {
		return "", err
	}
	if held || isShared(live) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, operatorv1.LabelCreatedByClusterManager)
		_, err := h.client.Resource(namespaces).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return "", failed("giving up namespace "+name, err)
	}
	if err := remove(ctx, h.client, namespaces, live); err != nil {
		return "", err
	}
	return "namespace " + name + " to go", nil
}

// isShared reports whether a namespace belongs to an agent too.
func isShared(o *unstructured.Unstructured) bool {
	for key := range o.GetLabels() {
		if strings.HasPrefix(key, operatorv1.LabelCreatedByKlusterlet) {
			return true
		}
	}
	return false
}
