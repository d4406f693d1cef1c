// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// StatusOptions say which hub to report on.
type StatusOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
}

// Component is one process of the hub.
type Component struct {
	Name     string        `json:"name"`
	Ready    cluster.Count `json:"ready"`
	Version  string        `json:"version"`
	Restarts int32         `json:"restarts"`
	Created  metav1.Time   `json:"created"`
	// Message is what holds it up.
	Message string `json:"message,omitempty"`
	Image   string `json:"image"`
	Nodes   string `json:"nodes,omitempty"`
	// Condition is the condition of the ClusterManager that is about it.
	Condition string `json:"condition,omitempty"`

	// Namespace and Deployment locate it; Stopped is true when it is scaled to 0.
	Namespace, Deployment string `json:"-"`
	Stopped               bool   `json:"-"`
}

// Counts are the numbers of a fleet.
type Counts struct {
	Clusters    int           `json:"clusters"`
	Available   int           `json:"available"`
	Unknown     int           `json:"unknown"`
	Pending     int           `json:"pending"`
	Sets        int           `json:"sets"`
	Placements  int           `json:"placements"`
	Unsatisfied int           `json:"unsatisfied"`
	Works       cluster.Count `json:"works"`
	AddOns      cluster.Count `json:"addons"`
}

// State is the summary of a hub.
type State struct {
	Context    string      `json:"context"`
	Server     string      `json:"hub-apiserver"`
	Healthy    bool        `json:"healthy"`
	Components []Component `json:"components"`
	// Conditions of the ClusterManager that are not as they should be.
	Problems []string `json:"problems,omitempty"`
	Counts   Counts   `json:"counts"`
}

// Status reads the state of a hub. With Wait it returns when the hub is healthy.
func Status(ctx context.Context, o StatusOptions) (State, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	hosted, err := HostedBy(ctx, o.Hub)
	if err != nil {
		return State{}, r.Fail(err)
	}
	if o.Wait {
		if err := o.wait(ctx, r, hosted); err != nil {
			return State{}, r.Fail(err)
		}
	}
	out := State{Context: o.Hub.Context, Server: o.Hub.Server()}
	manager, err := typed.Get[operatorv1.ClusterManager](ctx, o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	if apierrors.IsNotFound(err) {
		return out, fleet.NotHub(o.Hub, "there is no clustermanager/"+operatorv1.DefaultClusterManagerName)
	}
	if err != nil {
		return out, fleet.Explain("reading the clustermanager of "+o.Hub.String(), o.Hub, err)
	}
	if hosted != "" {
		out.Components, err = o.hosted(ctx, r)
	} else {
		out.Components, err = o.Components(ctx, manager)
	}
	if err != nil {
		return out, err
	}
	out.Problems = Problems(manager)
	more, err := o.unhealthy(ctx, r, out.Components)
	if err != nil {
		return out, err
	}
	out.Problems = append(out.Problems, more...)
	out.Healthy = len(out.Problems) == 0 && len(out.Components) > 0
	for _, c := range out.Components {
		out.Healthy = out.Healthy && c.Ready.Good == c.Ready.Total
	}
	out.Counts, err = o.counts(ctx)
	return out, err
}

// wait waits until the process of the hub runs, and what it serves answers.
func (o *StatusOptions) wait(ctx context.Context, r *fleet.Run, hosted string) error {
	w := &InitOptions{Common: o.Common, Hub: o.Hub}
	r.Step("hub controller")
	if hosted == "" {
		if _, err := workload.Deployed(ctx, r, o.Hub, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName); err != nil {
			return err
		}
	}
	if err := w.waitApplied(ctx, r); err != nil {
		return err
	}
	r.Done("")
	r.Step("admission")
	if err := w.waitAdmission(ctx, r); err != nil {
		return err
	}
	r.Done("answers")
	return nil
}

// unhealthy returns what the conditions cannot show, because a process that is gone does not
// update them: whether its loops run and its webhooks answer.
func (o *StatusOptions) unhealthy(ctx context.Context, r *fleet.Run, components []Component) ([]string, error) {
	runner, err := Deployment(ctx, o.Hub)
	if err != nil {
		return nil, err
	}
	others := OthersHub(runner)
	var out []string
	up := slices.ContainsFunc(components, func(c Component) bool { return c.Ready.Good > 0 })
	if up && !others {
		why, err := Idle(ctx, o.Hub, r.Now())
		if err != nil {
			return nil, err
		}
		if why != "" {
			out = append(out, why)
		}
	}
	faults, _, err := CheckAdmission(ctx, o.Hub, others)
	if err != nil {
		return nil, err
	}
	for _, f := range faults {
		if !f.Unasked {
			out = append(out, f.Title)
		}
	}
	return out, nil
}

// Problems returns the conditions that are not as they should be.
func Problems(cm *operatorv1.ClusterManager) []string {
	var out []string
	for _, c := range cm.Status.Conditions {
		bad := metav1.ConditionTrue
		switch c.Type {
		case operatorv1.ConditionApplied, operatorv1.ConditionValidFeatureGates, operatorv1.ConditionClusterProfilesKept,
			operatorv1.ConditionClusterPermissionsKept, operatorv1.ConditionSpecSupported:
			bad = metav1.ConditionFalse
		}
		if c.Status == bad && c.Type != "MigrationSucceeded" {
			out = append(out, fleet.BlockedBy(&c, nil).Cause)
		}
	}
	if apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionApplied) == nil {
		out = append(out, "the operator has not observed clustermanager/"+cm.Name)
	}
	return out
}

// Components reads the Deployments of the hub: one in the compact layout; the operator and one
// per component in the split layout.
func (o *StatusOptions) Components(ctx context.Context, cm *operatorv1.ClusterManager) ([]Component, error) {
	var out []Component
	for _, ns := range []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub} {
		list, err := typed.List[appsv1.Deployment](ctx, o.Hub.Client, fleet.Deployments, ns, metav1.ListOptions{})
		if err != nil {
			return nil, fleet.Explain("listing deployments of "+ns, o.Hub, err)
		}
		running, err := typed.List[corev1.Pod](ctx, o.Hub.Client, fleet.Pods, ns, metav1.ListOptions{})
		if err != nil {
			return nil, fleet.Explain("listing pods of "+ns, o.Hub, err)
		}
		for i := range list {
			if ns == operatorv1.NamespaceHub || list[i].Name == cm.Name {
				out = append(out, component(&list[i], running, cm))
			}
		}
	}
	slices.SortFunc(out, func(a, b Component) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

func component(d *appsv1.Deployment, running []corev1.Pod, cm *operatorv1.ClusterManager) Component {
	c := Component{Name: strings.TrimPrefix(d.Name, cm.Name+"-"), Created: d.CreationTimestamp,
		Ready:     cluster.Count{Good: int(workload.Ready(d)), Total: int(workload.Wanted(d))},
		Namespace: d.Namespace, Deployment: d.Name, Stopped: workload.ScaledDown(d)}
	if d.Name == cm.Name {
		c.Name = "hub"
	}
	if c.Stopped {
		c.Message = workload.ScaledDownText
	}
	if len(d.Spec.Template.Spec.Containers) > 0 {
		c.Image = ImageOf(d)
		c.Version = TagOf(c.Image)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return c
	}
	var nodes []string
	for i := range running {
		p := &running[i]
		if !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		for _, s := range p.Status.ContainerStatuses {
			c.Restarts += s.RestartCount
		}
		if cause := workload.Cause(p); cause != "" && c.Message == "" {
			c.Message = cause
		}
		if p.Spec.NodeName != "" {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	c.Nodes = strings.Join(nodes, ",")
	if degraded := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionHubRegistrationDegraded); degraded != nil {
		c.Condition = degraded.Type + "=" + string(degraded.Status)
	}
	return c
}

// counts reads the numbers of the fleet.
func (o *StatusOptions) counts(ctx context.Context) (Counts, error) {
	var out Counts
	clusters, err := cluster.List(ctx, cluster.ListOptions{Common: fleet.Common{Timeout: o.Timeout, Clock: o.Clock}, Hub: o.Hub})
	if err != nil {
		var e *fleet.Error
		if ok, hubErr := fleet.ServesHub(ctx, o.Hub); hubErr == nil && !ok && errors.As(err, &e) {
			return out, nil
		}
		return out, err
	}
	out.Clusters = len(clusters)
	for _, c := range clusters {
		switch c.Status {
		case cluster.Available:
			out.Available++
		case cluster.Unknown, cluster.NotAvailable:
			out.Unknown++
		case cluster.PendingAccept, cluster.PendingCSR, cluster.Joining:
			out.Pending++
		}
		out.Works.Good, out.Works.Total = out.Works.Good+c.Works.Good, out.Works.Total+c.Works.Total
		out.AddOns.Good, out.AddOns.Total = out.AddOns.Good+c.AddOns.Good, out.AddOns.Total+c.AddOns.Total
	}
	sets, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManagedClusterSets})
	if err != nil {
		return out, fleet.Explain("listing managedclustersets", o.Hub, err)
	}
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.Placements})
	if err != nil {
		return out, fleet.Explain("listing placements", o.Hub, err)
	}
	out.Sets, out.Placements = len(sets), len(items)
	out.Unsatisfied = countIf(items, func(u *unstructured.Unstructured) bool { return !fleet.ConditionTrue(u, "PlacementSatisfied") })
	return out, nil
}

func countIf(items []unstructured.Unstructured, is func(*unstructured.Unstructured) bool) int {
	n := 0
	for i := range items {
		if is(&items[i]) {
			n++
		}
	}
	return n
}
