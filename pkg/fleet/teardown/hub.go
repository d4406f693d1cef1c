// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// hubPoll is how often it is looked whether something is gone.
const hubPoll = 250 * time.Millisecond

// HubOptions say which hub to remove, and how.
type HubOptions struct {
	// ClusterManager is the name of the ClusterManager; empty means
	// "cluster-manager".
	ClusterManager string
	// Patience is how long to wait for one thing, while a hub process runs,
	// before the error tells what is missing; zero waits until ctx ends.
	Patience time.Duration
	// Force takes the finalizers of agents off add-ons and works: what they
	// deployed stays on the managed clusters. Without it, an agent that is away
	// keeps the hub from being removed.
	Force bool
	// Progress is told what is waited for, one line each; nil is silent.
	Progress func(string)
	// Sleep waits between two looks; nil uses a timer. Tests replace it.
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

// ErrHubBusy means that something that must go first does not go; the error's
// text names it.
var ErrHubBusy = errors.New("the hub still holds something")

// Hub removes a hub with everything that the installer and the hub process
// made. A running hub process does its part itself; where none runs, or where
// it ends meanwhile, the same steps are done here. It may be repeated after any
// failure. It deletes all ManagedClusters: who calls it has asked about that.
func Hub(ctx context.Context, client dynamic.Interface, o HubOptions) error {
	o.complete()
	var waited time.Duration
	said := ""
	for {
		waiting, err := hubRound(ctx, client, o)
		if err != nil {
			return fmt.Errorf("removing the hub: %w", err)
		}
		if waiting == "" {
			return nil
		}
		if waiting != said {
			o.Progress("waiting for " + waiting)
			said, waited = waiting, 0
		}
		if o.Patience > 0 && waited >= o.Patience {
			return fmt.Errorf("removing the hub: %w: %s", ErrHubBusy, waiting)
		}
		if err := o.Sleep(ctx, hubPoll); err != nil {
			return fmt.Errorf("removing the hub: waiting for %s: %w", waiting, err)
		}
		waited += hubPoll
	}
}

// hubRound goes as far as it can and tells what it has to wait for.
func hubRound(ctx context.Context, client dynamic.Interface, o HubOptions) (string, error) {
	present, reason, err := deleteClusterManager(ctx, client, o.ClusterManager)
	if err != nil {
		return "", err
	}
	alive, err := hubAlive(ctx, client)
	if err != nil {
		return "", err
	}
	if present && alive && !o.Force {
		return reason, nil
	}
	waiting, err := HubInstances(ctx, client, o, alive)
	if waiting != "" || err != nil {
		return waiting, err
	}
	if waiting, err = HubRest(ctx, client); waiting != "" || err != nil {
		return waiting, err
	}
	if present {
		if err := releaseClusterManager(ctx, client, o.ClusterManager); err != nil {
			return "", err
		}
	}
	return hubInstalled(ctx, client, o.ClusterManager)
}

// deleteClusterManager asks for the deletion; it tells whether the object is
// still there, and what the hub process says that it waits for.
func deleteClusterManager(ctx context.Context, client dynamic.Interface, name string) (present bool, reason string, err error) {
	err = reconcile.Delete(ctx, client, reconcile.Target{Resource: clusterManagers, Name: name})
	if err != nil && !missing(err) {
		return false, "", err
	}
	live, err := client.Resource(clusterManagers).Get(ctx, name, metav1.GetOptions{})
	if missing(err) {
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

// hubAlive tells whether a hub process works: its Deployment has an available
// replica.
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
