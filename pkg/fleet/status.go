// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// StatusOptions say which hub to look at.
type StatusOptions struct {
	Common
	// Hub is the hub.
	Hub *Cluster
}

// Component is one process of the hub.
type Component struct {
	Name     string      `json:"name"`
	Ready    Count       `json:"ready"`
	Version  string      `json:"version"`
	Restarts int32       `json:"restarts"`
	Created  metav1.Time `json:"created"`
	// Message is what it hangs on.
	Message string `json:"message,omitempty"`
	Image   string `json:"image"`
	Nodes   string `json:"nodes,omitempty"`
	// Condition is the condition of the ClusterManager that is about it.
	Condition string `json:"condition,omitempty"`

	// namespace and deployment are where it is; stopped tells that it is scaled to 0.
	namespace, deployment string
	stopped               bool
}

// FleetCounts are the numbers of a fleet.
type FleetCounts struct {
	Clusters    int   `json:"clusters"`
	Available   int   `json:"available"`
	Unknown     int   `json:"unknown"`
	Pending     int   `json:"pending"`
	Sets        int   `json:"sets"`
	Placements  int   `json:"placements"`
	Unsatisfied int   `json:"unsatisfied"`
	Works       Count `json:"works"`
	AddOns      Count `json:"addons"`
}

// HubStatus is a hub at a glance.
type HubStatus struct {
	Context    string      `json:"context"`
	Server     string      `json:"hub-apiserver"`
	Healthy    bool        `json:"healthy"`
	Components []Component `json:"components"`
	// Conditions of the ClusterManager that are not as they should be.
	Problems []string    `json:"problems,omitempty"`
	Counts   FleetCounts `json:"counts"`
}

// Status looks at a hub. With Wait it returns when the hub is healthy.
func Status(ctx context.Context, o StatusOptions) (HubStatus, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if o.Wait {
		w := &InitOptions{Common: o.Common, Hub: o.Hub}
		r.step("hub controller")
		if err := r.deployed(ctx, o.Hub, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName); err != nil {
			return HubStatus{}, r.fail(err)
		}
		if err := w.waitApplied(ctx, r); err != nil {
			return HubStatus{}, r.fail(err)
		}
		r.done("")
		r.step("admission")
		if err := w.waitAdmission(ctx, r); err != nil {
			return HubStatus{}, r.fail(err)
		}
		r.done("answers")
	}
	out := HubStatus{Context: o.Hub.Context, Server: o.Hub.Server()}
	manager, err := typed.Get[operatorv1.ClusterManager](ctx, o.Hub.Client, clusterManagers, "", operatorv1.DefaultClusterManagerName)
	if apierrors.IsNotFound(err) {
		return out, notHub(o.Hub, "there is no clustermanager/"+operatorv1.DefaultClusterManagerName)
	}
	if err != nil {
		return out, explain("reading the clustermanager of "+o.Hub.String(), o.Hub, err)
	}
	if out.Components, err = o.components(ctx, manager); err != nil {
		return out, err
	}
	out.Problems = problems(manager)
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

// unhealthy tells what the conditions cannot say, since a process that is gone takes
// none of them back: whether its loops run, and its webhooks answer.
func (o *StatusOptions) unhealthy(ctx context.Context, r *run, components []Component) ([]string, error) {
	h := &hubCheck{checking: &checking{o: &CheckOptions{Common: o.Common, Hub: o.Hub}, run: r}}
	var err error
	if h.runner, err = hubDeployment(ctx, o.Hub); err != nil {
		return nil, err
	}
	h.others = othersHub(h.runner)
	var out []string
	up := slices.ContainsFunc(components, func(c Component) bool { return c.Ready.Good > 0 })
	if up && !h.others {
		why, err := idle(ctx, o.Hub, r.now())
		if err != nil {
			return nil, err
		}
		if why != "" {
			out = append(out, why)
		}
	}
	found, err := h.admission(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if f.Severity == SeverityError {
			out = append(out, f.Title)
		}
	}
	return out, nil
}

// problems names the conditions that are not as they should be.
func problems(cm *operatorv1.ClusterManager) []string {
	var out []string
	for _, c := range cm.Status.Conditions {
		bad := metav1.ConditionTrue
		switch c.Type {
		case operatorv1.ConditionApplied, operatorv1.ConditionValidFeatureGates, operatorv1.ConditionClusterProfilesKept:
			bad = metav1.ConditionFalse
		}
		if c.Status == bad && c.Type != "MigrationSucceeded" {
			out = append(out, blockedBy(&c, "").cause)
		}
	}
	if apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionApplied) == nil {
		out = append(out, "the operator has not looked at clustermanager/"+cm.Name)
	}
	return out
}

// components reads the Deployments of the hub: one in the compact layout, the
// operator and one a part in the split one.
func (o *StatusOptions) components(ctx context.Context, cm *operatorv1.ClusterManager) ([]Component, error) {
	var out []Component
	for _, ns := range []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub} {
		list, err := typed.List[appsv1.Deployment](ctx, o.Hub.Client, deployments, ns, metav1.ListOptions{})
		if err != nil {
			return nil, explain("listing deployments of "+ns, o.Hub, err)
		}
		running, err := typed.List[corev1.Pod](ctx, o.Hub.Client, pods, ns, metav1.ListOptions{})
		if err != nil {
			return nil, explain("listing pods of "+ns, o.Hub, err)
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
	c := Component{Name: strings.TrimPrefix(d.Name, cm.Name+"-"), Created: d.CreationTimestamp, Ready: Count{Good: int(d.Status.ReadyReplicas), Total: int(wantedPods(d))},
		namespace: d.Namespace, deployment: d.Name, stopped: scaledDown(d)}
	if d.Name == cm.Name {
		c.Name = "hub"
	}
	if c.stopped {
		c.Message = scaledDownText
	}
	if len(d.Spec.Template.Spec.Containers) > 0 {
		c.Image = imageOf(d)
		c.Version = tagOf(c.Image)
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
		if cause := podCause(p); cause != "" && c.Message == "" {
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

// tagOf returns the tag of an image reference.
func tagOf(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	if _, tag, ok := strings.Cut(name, ":"); ok {
		return tag
	}
	return "-"
}

// counts reads the numbers of the fleet.
func (o *StatusOptions) counts(ctx context.Context) (FleetCounts, error) {
	var out FleetCounts
	clusters, err := ListClusters(ctx, ListOptions{Common: Common{Timeout: o.Timeout, Clock: o.Clock}, Hub: o.Hub})
	if err != nil {
		var e *Error
		if ok, hubErr := isHub(ctx, o.Hub); hubErr == nil && !ok && asError(err, &e) {
			return out, nil
		}
		return out, err
	}
	out.Clusters = len(clusters)
	for _, c := range clusters {
		switch c.Status {
		case ClusterAvailable:
			out.Available++
		case ClusterUnknown, ClusterNotAvailable:
			out.Unknown++
		case ClusterPendingAccept, ClusterPendingCSR, ClusterJoining:
			out.Pending++
		}
		out.Works.Good, out.Works.Total = out.Works.Good+c.Works.Good, out.Works.Total+c.Works.Total
		out.AddOns.Good, out.AddOns.Total = out.AddOns.Good+c.AddOns.Good, out.AddOns.Total+c.AddOns.Total
	}
	sets, err := listAll(ctx, o.Hub, query{resource: managedClusterSets})
	if err != nil {
		return out, explain("listing managedclustersets", o.Hub, err)
	}
	items, err := listAll(ctx, o.Hub, query{resource: placements})
	if err != nil {
		return out, explain("listing placements", o.Hub, err)
	}
	out.Sets, out.Placements = len(sets), len(items)
	out.Unsatisfied = countIf(items, func(u *unstructured.Unstructured) bool { return !conditionTrue(u, "PlacementSatisfied") })
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
