// SPDX-License-Identifier: Apache-2.0

package hub

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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// wait returns when the hub works: its process runs, all kinds are served, admission answers,
// and the sets of every hub exist.
func (o *InitOptions) wait(ctx context.Context, r *fleet.Run) error {
	r.Step("hub controller")
	ready, err := workload.Deployed(ctx, r, o.Hub, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName)
	if err != nil {
		return err
	}
	if err := o.waitLayout(ctx, r); err != nil {
		return err
	}
	if err := o.waitApplied(ctx, r); err != nil {
		return err
	}
	r.Done(ready)
	r.Step("APIs")
	n, err := o.waitKinds(ctx, r)
	if err != nil {
		return err
	}
	r.Done(fmt.Sprintf("%d kinds served", n))
	r.Step("admission")
	if err := o.waitAdmission(ctx, r); err != nil {
		return err
	}
	r.Done("answers")
	if wanted, err := o.wantsSets(ctx); err != nil || !wanted {
		return err
	}
	r.Step("cluster sets")
	if err := o.waitSets(ctx, r); err != nil {
		return err
	}
	r.Done("default, global")
	return nil
}

// waitApplied waits until the operator has observed the ClusterManager and reports it as
// applied.
func (o *InitOptions) waitApplied(ctx context.Context, r *fleet.Run) error {
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: fleet.ClusterManagers, Name: operatorv1.DefaultClusterManagerName, Clock: r.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, nil
			}
			observed, _, _ := unstructured.NestedInt64(items[0].Object, "status", "observedGeneration")
			conditions := fleet.ConditionsOf(items[0])
			return observed >= items[0].GetGeneration() && apimeta.IsStatusConditionTrue(conditions, operatorv1.ConditionApplied) &&
				!apimeta.IsStatusConditionTrue(conditions, operatorv1.ConditionProgressing) &&
				!apimeta.IsStatusConditionTrue(conditions, operatorv1.ConditionHubRegistrationDegraded), nil
		})
	return r.TimedOut(ctx, err, "clustermanager/"+operatorv1.DefaultClusterManagerName, o.managerBlocker)
}

// managerBlocker looks for what holds up the ClusterManager.
func (o *InitOptions) managerBlocker(ctx context.Context) *fleet.Blocker {
	if b := workload.Blocker(ctx, o.Hub, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName); b != nil {
		return b
	}
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	if err != nil {
		return &fleet.Blocker{Cause: fleet.OneLine(err.Error())}
	}
	for _, kind := range []string{operatorv1.ConditionApplied, operatorv1.ConditionHubRegistrationDegraded, operatorv1.ConditionProgressing} {
		c := apimeta.FindStatusCondition(cm.Status.Conditions, kind)
		if c != nil && (c.Status == metav1.ConditionTrue) != (kind == operatorv1.ConditionApplied) {
			return fleet.BlockedBy(c, o.logs())
		}
	}
	return &fleet.Blocker{Cause: "the hub process has not written its conditions", Fix: o.logs()}
}

// logs is the fix that reads the hub's logs.
func (o *InitOptions) logs() fleet.Fix {
	return fleet.ShowLogs.On(o.Hub, "namespace", operatorv1.NamespaceOperator, "name", operatorv1.DefaultClusterManagerName)
}

// waitKinds waits until all kinds of the hub are served.
func (o *InitOptions) waitKinds(ctx context.Context, r *fleet.Run) (int, error) {
	kinds, err := crd.Hub()
	if err != nil {
		return 0, err
	}
	wanted := map[string]bool{}
	for _, d := range kinds {
		wanted[d.GetName()] = true
	}
	missing := ""
	err = await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: fleet.Definitions, Clock: r.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			served := map[string]bool{}
			for _, u := range items {
				served[u.GetName()] = fleet.ConditionTrue(u, "Established")
			}
			missing = ""
			for name := range wanted {
				if !served[name] && (missing == "" || name < missing) {
					missing = name
				}
			}
			return missing == "", nil
		})
	return len(wanted), r.TimedOut(ctx, err, "the APIs of the hub", func(ctx context.Context) *fleet.Blocker {
		if b := o.managerBlocker(ctx); strings.Contains(b.Cause, "=") {
			return b
		}
		return &fleet.Blocker{Cause: "customresourcedefinition/" + missing + " is not established", Fix: workload.Repair(o.Hub, true)}
	})
}

// waitAdmission probes every webhook without storing anything, until all of them answer.
func (o *InitOptions) waitAdmission(ctx context.Context, r *fleet.Run) error {
	var faults []Fault
	err := await.True(ctx, r.Given.Clock, write.ServedPause, func(ctx context.Context) (bool, error) {
		var err error
		faults, err = probeAdmission(ctx, o.Hub)
		faults = slices.DeleteFunc(faults, func(f Fault) bool { return f.Unasked })
		return len(faults) == 0, err
	})
	return r.TimedOut(ctx, err, "admission to answer", func(ctx context.Context) *fleet.Blocker {
		if len(faults) == 0 {
			return o.managerBlocker(ctx)
		}
		return &fleet.Blocker{Cause: fmt.Sprintf("%s: %s", faults[0].Title, faults[0].Cause),
			Fix: o.logs()}
	})
}

// wantsSets reports whether the hub makes the sets of every hub.
func (o *InitOptions) wantsSets(ctx context.Context) (bool, error) {
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	if err != nil {
		return false, fleet.Explain("reading clustermanager/"+operatorv1.DefaultClusterManagerName, o.Hub, err)
	}
	c := cm.Spec.RegistrationConfiguration
	return c == nil || !slices.ContainsFunc(c.FeatureGates, func(g operatorv1.FeatureGate) bool {
		return g.Feature == "DefaultClusterSet" && g.Mode != operatorv1.FeatureGateModeTypeEnable
	}), nil
}

// waitSets waits for the sets of every hub.
func (o *InitOptions) waitSets(ctx context.Context, r *fleet.Run) error {
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: fleet.ManagedClusterSets, Clock: r.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			have := map[string]bool{}
			for _, u := range items {
				have[u.GetName()] = true
			}
			return have[clusterv1beta2.DefaultClusterSet] && have[clusterv1beta2.GlobalClusterSet], nil
		})
	return r.TimedOut(ctx, err, "the cluster sets default and global", o.managerBlocker)
}
