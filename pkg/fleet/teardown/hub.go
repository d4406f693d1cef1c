// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// hubPoll is the interval of checks whether something is gone.
const hubPoll = 250 * time.Millisecond

// HubOptions say which hub to remove, and how.
type HubOptions struct {
	// ClusterManager is the name of the ClusterManager; empty means
	// "cluster-manager".
	ClusterManager string
	// Patience is how long to wait for one thing, while a hub process runs, before the error
	// says what is missing; zero waits until ctx ends.
	Patience time.Duration
	// Force ends the hub process first, and removes the finalizer of an agent that is away
	// from its works. Without it such an agent keeps the hub from being removed.
	Force bool
	// AgentPatience is how long, with Force, agents may take to confirm that they keep what
	// works applied before those that are away are skipped; zero means 30 s.
	AgentPatience time.Duration
	// Clock decides whether an agent is away; nil is the system's.
	Clock clock.PassiveClock
	// Progress receives what the removal waits for, one line each; nil is silent.
	Progress func(string)
	// Sleep waits between two checks; nil uses a timer. Tests replace it.
	Sleep func(context.Context, time.Duration) error
}

func (o *HubOptions) complete() {
	if o.ClusterManager == "" {
		o.ClusterManager = operatorv1.DefaultClusterManagerName
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.AgentPatience == 0 {
		o.AgentPatience = keepPatience
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// ErrHubBusy means that something that must be deleted first is not; the error's text names
// it.
var ErrHubBusy = errors.New("the hub still holds something")

// Hub removes a hub with everything that the installer and the hub process made. A running hub
// process does its part itself; if none runs, or it ends meanwhile, the same steps are done
// here. It can be repeated after any failure. It deletes all ManagedClusters: the caller must
// have confirmed that.
//
// What works applied stays on the managed clusters, and so do add-ons: see Keep, whose result
// and error Hub returns too. It waits for objects that another program holds by a finalizer.
func Hub(ctx context.Context, client dynamic.Interface, o HubOptions) ([]KeptCluster, error) {
	h := newHubRemoval(client, o)
	var waited time.Duration
	said, faults := "", 0
	for {
		waiting, err := h.round(ctx)
		switch {
		case err != nil && isTransient(err) && faults < maxFaults:
			faults++
		case err != nil:
			if errors.Is(err, ErrNotKept) {
				err = errors.Join(err, h.keeper.undo(ctx))
			}
			return h.keeper.result(), fmt.Errorf("removing the hub: %w", err)
		case waiting == "":
			return h.keeper.result(), nil
		default:
			faults = 0
		}
		if waiting != "" && waiting != said {
			h.o.Progress("waiting for " + waiting)
			said, waited = waiting, 0
		}
		h.tired = waited >= h.o.AgentPatience
		if h.o.Patience > 0 && waited >= h.o.Patience {
			return h.keeper.result(), fmt.Errorf("removing the hub: %w: %s", ErrHubBusy, said)
		}
		if err := h.o.Sleep(ctx, hubPoll); err != nil {
			return h.keeper.result(), fmt.Errorf("removing the hub: waiting for %s: %w", said, err)
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
		if waiting, err := inOrder(ctx, h.stopProcess, h.admission, h.keeper.round); waiting != "" || err != nil {
			return waiting, err
		}
	}
	present, reason, err := deleteClusterManager(ctx, h.client, h.o.ClusterManager)
	if err != nil {
		return "", err
	}
	alive, err := hubAlive(ctx, h.client)
	if err != nil {
		return "", err
	}
	if present && alive {
		return reason, nil
	}
	if waiting, err := inOrder(ctx, h.instances, h.rest); waiting != "" || err != nil {
		return waiting, err
	}
	if present {
		if err := releaseClusterManager(ctx, h.client, h.o.ClusterManager); err != nil {
			return "", err
		}
	}
	return hubInstalled(ctx, h.client, h.o.ClusterManager)
}

// stopProcess ends the hub process, so that no loop recreates what is deleted.
func (h *hubRemoval) stopProcess(ctx context.Context) (string, error) {
	err := reconcile.Delete(ctx, h.client, reconcile.Target{Resource: deployments, Namespace: operatorv1.NamespaceOperator,
		Name: operatorv1.DefaultClusterManagerName})
	if err != nil {
		return "", err
	}
	list, err := h.client.Resource(hubPods).Namespace(operatorv1.NamespaceOperator).List(ctx, metav1.ListOptions{LabelSelector: hubPodLabel})
	if err != nil {
		return "", fmt.Errorf("listing the pods of the hub: %w", err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	return describeObjects("pods of the hub", list.Items), nil
}

// hubPodLabel is on the pods of the hub process.
const hubPodLabel = "app=cluster-manager"

// deleteClusterManager deletes the ClusterManager; it returns whether the object still exists,
// and what the hub process waits for, as it reports.
func deleteClusterManager(ctx context.Context, client dynamic.Interface, name string) (present bool, reason string, err error) {
	err = reconcile.Delete(ctx, client, reconcile.Target{Resource: clusterManagers, Name: name})
	if err != nil && !isMissing(err) {
		return false, "", err
	}
	live, err := client.Resource(clusterManagers).Get(ctx, name, metav1.GetOptions{})
	if isMissing(err) {
		return false, "", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("reading clustermanager %s: %w", name, err)
	}
	reason = "the hub process to remove what it made"
	cm, err := typed.FromUnstructured[operatorv1.ClusterManager](live)
	if err != nil {
		return true, reason, nil //nolint:nilerr // the reason is a courtesy
	}
	if c := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionProgressing); c != nil && c.Status == metav1.ConditionTrue {
		reason = "the hub process: " + c.Message
	}
	return true, reason, nil
}

func releaseClusterManager(ctx context.Context, client dynamic.Interface, name string) error {
	return dropFinalizers(ctx, client.Resource(clusterManagers), name, operatorv1.FinalizerClusterManager)
}

// hubAlive reports whether a hub process works: its Deployment has an available replica.
func hubAlive(ctx context.Context, client dynamic.Interface) (bool, error) {
	d, err := client.Resource(deployments).Namespace(operatorv1.NamespaceOperator).Get(ctx, operatorv1.DefaultClusterManagerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the hub's deployment: %w", err)
	}
	return d.GetDeletionTimestamp() == nil && number(d.Object, "status", "availableReplicas") > 0, nil
}

// Resources that a hub consists of.
var (
	clusterManagers     = operatorv1.GroupVersion.WithResource("clustermanagers")
	deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	hubNamespaces       = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	hubSecrets          = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	hubConfigMaps       = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	hubServices         = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	hubPods             = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	hubAccounts         = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	hubRoles            = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	hubRoleBindings     = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	hubClusterRoles     = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	hubClusterBindings  = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	hubDefinitions      = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	validatingWebhooks  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutatingWebhooks    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	managedClusters     = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1", Resource: "managedclusters"}
	managedAddOns       = schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Resource: "managedclusteraddons"}
	manifestWorks       = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}
	manifestWorkReplica = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1alpha1", Resource: "manifestworkreplicasets"}
)
