// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// wait returns when the hub does its work: its process runs, all kinds are
// served, admission answers, and the sets that every hub has are there.
func (o *InitOptions) wait(ctx context.Context, r *run) error {
	r.step("hub controller")
	if err := r.deployed(ctx, o.Hub, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName); err != nil {
		return err
	}
	if err := o.waitApplied(ctx, r); err != nil {
		return err
	}
	r.done("1/1 ready")
	r.step("APIs")
	n, err := o.waitKinds(ctx, r)
	if err != nil {
		return err
	}
	r.done(fmt.Sprintf("%d kinds served", n))
	r.step("admission")
	if err := o.waitAdmission(ctx, r); err != nil {
		return err
	}
	r.done("answers")
	if on, ok := o.FeatureGates["DefaultClusterSet"]; ok && !on {
		return nil
	}
	r.step("cluster sets")
	if err := o.waitSets(ctx, r); err != nil {
		return err
	}
	r.done("default, global")
	return nil
}

// waitApplied waits until the operator has seen the ClusterManager and says that
// all of it is in place.
func (o *InitOptions) waitApplied(ctx context.Context, r *run) error {
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: clusterManagers, Name: operatorv1.DefaultClusterManagerName, Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, nil
			}
			observed, _, _ := unstructured.NestedInt64(items[0].Object, "status", "observedGeneration")
			conditions := conditionsOf(items[0])
			return observed >= items[0].GetGeneration() && apimeta.IsStatusConditionTrue(conditions, operatorv1.ConditionApplied) &&
				!apimeta.IsStatusConditionTrue(conditions, operatorv1.ConditionProgressing) &&
				!apimeta.IsStatusConditionTrue(conditions, operatorv1.ConditionHubRegistrationDegraded), nil
		})
	return r.timedOut(ctx, err, "clustermanager/"+operatorv1.DefaultClusterManagerName, o.managerBlocker)
}

// managerBlocker looks for what the ClusterManager hangs on.
func (o *InitOptions) managerBlocker(ctx context.Context) *blocker {
	fix := "kubectl logs -n " + operatorv1.NamespaceOperator + " deploy/" + operatorv1.DefaultClusterManagerName + o.Hub.flag()
	if b := podBlocker(ctx, o.Hub, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName); b != nil {
		return b
	}
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, o.Hub.Client, clusterManagers, "", operatorv1.DefaultClusterManagerName)
	if err != nil {
		return &blocker{cause: oneLine(err.Error())}
	}
	for _, kind := range []string{operatorv1.ConditionApplied, operatorv1.ConditionHubRegistrationDegraded, operatorv1.ConditionProgressing} {
		c := apimeta.FindStatusCondition(cm.Status.Conditions, kind)
		if c != nil && (c.Status == metav1.ConditionTrue) != (kind == operatorv1.ConditionApplied) {
			return blockedBy(c, fix)
		}
	}
	return &blocker{cause: "the hub process has not written its conditions", fix: fix}
}

// waitKinds waits until all kinds of the hub are served.
func (o *InitOptions) waitKinds(ctx context.Context, r *run) (int, error) {
	kinds, err := crd.Hub()
	if err != nil {
		return 0, err
	}
	wanted := map[string]bool{}
	for _, d := range kinds {
		wanted[d.GetName()] = true
	}
	missing := ""
	err = await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: definitions, Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			served := map[string]bool{}
			for _, u := range items {
				served[u.GetName()] = conditionTrue(u, "Established")
			}
			missing = ""
			for name := range wanted {
				if !served[name] && (missing == "" || name < missing) {
					missing = name
				}
			}
			return missing == "", nil
		})
	return len(wanted), r.timedOut(ctx, err, "the APIs of the hub", func(ctx context.Context) *blocker {
		if b := o.managerBlocker(ctx); strings.Contains(b.cause, "=") {
			return b
		}
		return &blocker{cause: "customresourcedefinition/" + missing + " is not established", fix: repair(o.Hub, true)}
	})
}

// waitAdmission asks every webhook to judge an object without storing it, until all
// of them answer.
func (o *InitOptions) waitAdmission(ctx context.Context, r *run) error {
	var faults []admissionFault
	err := await.True(ctx, r.common.Clock, servedPause, func(ctx context.Context) (bool, error) {
		var err error
		faults, err = probeAdmission(ctx, o.Hub)
		faults = slices.DeleteFunc(faults, func(f admissionFault) bool { return f.unasked })
		return len(faults) == 0, err
	})
	return r.timedOut(ctx, err, "admission to answer", func(ctx context.Context) *blocker {
		if len(faults) == 0 {
			return o.managerBlocker(ctx)
		}
		return &blocker{cause: fmt.Sprintf("%s: %s", faults[0].title, faults[0].cause),
			fix: "kubectl logs -n " + operatorv1.NamespaceOperator + " deploy/" + operatorv1.DefaultClusterManagerName + o.Hub.flag()}
	})
}

// waitSets waits for the sets that every hub has.
func (o *InitOptions) waitSets(ctx context.Context, r *run) error {
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: managedClusterSets, Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			have := map[string]bool{}
			for _, u := range items {
				have[u.GetName()] = true
			}
			return have[clusterv1beta2.DefaultClusterSet] && have[clusterv1beta2.GlobalClusterSet], nil
		})
	return r.timedOut(ctx, err, "the cluster sets default and global", o.managerBlocker)
}
