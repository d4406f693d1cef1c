// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
)

// StatusOptions say which add-on to report on, and on which clusters.
type StatusOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Name of the add-on.
	Name string
	// Targets keeps these clusters; empty keeps all that the add-on concerns.
	Targets cluster.Targets
	// Selector is a label selector on the ManagedClusterAddOns.
	Selector string
}

// State is one add-on on one cluster.
type State struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Available, Progressing, Registered and Applied are the statuses of conditions; empty
	// while there is none.
	Available   string `json:"available,omitempty"`
	Progressing string `json:"progressing,omitempty"`
	Registered  string `json:"registered,omitempty"`
	Applied     string `json:"applied,omitempty"`
	// Lease is fresh, stale or missing; empty where health is reported in another way.
	Lease string `json:"lease,omitempty"`
	// Namespace is where the agent runs on the cluster.
	Namespace string `json:"namespace,omitempty"`
	// Configs counts the applied configurations among the desired ones.
	Configs cluster.Count `json:"configs"`
	// Rollout counts the configurations instead of clusters: it is how far they have reached this
	// cluster.
	Rollout cluster.Rollout `json:"rollout"`
	// Excluded is true when the cluster is excluded from the install strategy.
	Excluded bool `json:"excluded,omitempty"`
	// Message says what is wrong, or what is still pending.
	Message string            `json:"message,omitempty"`
	Created metav1.Time       `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// States returns the state of an add-on on its clusters, by name, including those that are
// excluded from its install strategy. It sends three list requests, however many clusters
// there are.
func States(ctx context.Context, o StatusOptions) ([]State, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	var registered, instances, clusters []unstructured.Unstructured
	if err := fleet.ListTogether(ctx, o.Hub,
		fleet.Into(&registered, fleet.Query{Resource: fleet.ManagementAddOns, Fields: "metadata.name=" + o.Name}),
		fleet.Into(&instances, fleet.Query{Resource: fleet.ClusterAddOns, Labels: o.Selector, Fields: "metadata.name=" + o.Name}),
		fleet.Into(&clusters, fleet.Query{Resource: fleet.ManagedClusters}),
	); err != nil {
		return nil, err
	}
	states, err := o.states(instances, clusters)
	if err != nil {
		return nil, err
	}
	if len(states)+len(registered) == 0 && o.Selector == "" {
		if err := fleet.NeedHub(ctx, o.Hub); err != nil {
			return nil, err
		}
		return nil, naming.NoAddOn(o.Name, o.Hub)
	}
	if !o.Targets.Empty() {
		names, err := o.Targets.Resolve(ctx, o.Hub)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(states, func(cluster string, _ State) bool { return !slices.Contains(names, cluster) })
	}
	out := slices.Collect(maps.Values(states))
	slices.SortFunc(out, func(a, b State) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out, nil
}

// On returns the states of all add-ons of one cluster, by name, in one list request.
func On(ctx context.Context, hub *fleet.Cluster, clusterName string) ([]State, error) {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.ClusterAddOns, Namespace: clusterName})
	if err != nil {
		return nil, fleet.Explain("listing managedclusteraddons", hub, err)
	}
	out := []State{}
	err = placement.TakeUp(&items, func(a *addonv1alpha1.ManagedClusterAddOn) { out = append(out, stateOf(a)) })
	slices.SortFunc(out, func(a, b State) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// states returns the clusters that have the add-on or are excluded from it.
func (o *StatusOptions) states(instances, clusters []unstructured.Unstructured) (map[string]State, error) {
	out := map[string]State{}
	if err := placement.TakeUp(&instances, func(a *addonv1alpha1.ManagedClusterAddOn) { out[a.Namespace] = stateOf(a) }); err != nil {
		return nil, err
	}
	for i := range clusters {
		name := clusters[i].GetName()
		if _, excluded := clusters[i].GetAnnotations()[addonv1alpha1.AnnotationPrefixExclude+o.Name]; !excluded {
			continue
		}
		state, has := out[name]
		if !has && o.Selector != "" {
			continue
		}
		state.Cluster, state.Name, state.Excluded = name, o.Name, true
		if !has {
			state.Message = "excluded by addon disable"
		}
		out[name] = state
	}
	return out, nil
}

func stateOf(a *addonv1alpha1.ManagedClusterAddOn) State {
	is := func(kind string) string { return cluster.ConditionStatus(a.Status.Conditions, kind) }
	s := State{
		Cluster: a.Namespace, Name: a.Name, Namespace: cmp.Or(a.Status.Namespace, a.Spec.InstallNamespace), Created: a.CreationTimestamp, Labels: a.Labels,
		Available: is(addonv1alpha1.ConditionAvailable), Progressing: is(addonv1alpha1.ConditionProgressing),
		Registered: is(addonv1alpha1.ConditionRegistrationApplied), Applied: is(addonv1alpha1.ConditionManifestApplied),
		Lease: leaseOf(a), Message: firstTrouble(a),
	}
	for _, c := range a.Status.ConfigReferences {
		if c.DesiredConfig == nil {
			continue
		}
		s.Configs.Total++
		if c.LastAppliedConfig != nil && *c.LastAppliedConfig == *c.DesiredConfig && c.DesiredConfig.SpecHash != "" {
			s.Configs.Good++
		}
	}
	s.Rollout = cluster.Rollout{Total: s.Configs.Total, Done: s.Configs.Good}
	rest := s.Configs.Total - s.Configs.Good
	switch c := apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionProgressing); {
	case c == nil:
		s.Rollout.Waiting = rest
	case c.Status == metav1.ConditionTrue:
		s.Rollout.Running = rest
	case c.Reason == addonv1alpha1.ReasonFailed || c.Reason == addonv1alpha1.ReasonConfigurationUnsupported:
		s.Rollout.Failed = rest
	default:
		s.Rollout.Waiting = rest
	}
	return s
}

// Progress counts states, of one add-on on many clusters or of many on one. An add-on is done where it
// is available, and waits where nothing is reported of it.
func Progress(states []State) cluster.Rollout {
	out := cluster.Rollout{Total: len(states)}
	for i := range states {
		switch s := &states[i]; {
		case s.Available == string(metav1.ConditionTrue):
			out.Done++
		case s.Progressing == string(metav1.ConditionTrue):
			out.Running++
		case s.Available == "":
			out.Waiting++
		default:
			out.Failed++
		}
	}
	return out
}

// leaseOf returns the state of the lease, from the agent's condition.
func leaseOf(a *addonv1alpha1.ManagedClusterAddOn) string {
	c := apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionAvailable)
	if c == nil {
		return ""
	}
	return map[string]string{
		addonv1alpha1.ReasonLeaseUpdated: "fresh", addonv1alpha1.ReasonLeaseUpdateStopped: "stale", addonv1alpha1.ReasonLeaseNotFound: "missing",
	}[c.Reason]
}

// troubles are the conditions that can keep an add-on from working, in the order in which it
// passes them, and the status that means trouble.
var troubles = []struct {
	kind string
	bad  metav1.ConditionStatus
}{
	{addonv1alpha1.ConditionHostingClusterValidity, metav1.ConditionFalse},
	{addonv1alpha1.ConditionRegistrationApplied, metav1.ConditionFalse},
	{addonv1alpha1.ConditionConfigured, metav1.ConditionFalse},
	{addonv1alpha1.ConditionManifestApplied, metav1.ConditionFalse},
	{addonv1alpha1.ConditionHostingManifestApplied, metav1.ConditionFalse},
	{addonv1alpha1.ConditionClusterCertificateRotated, metav1.ConditionFalse},
	{addonv1alpha1.ConditionTokenRefreshed, metav1.ConditionFalse},
	{addonv1alpha1.ConditionDegraded, metav1.ConditionTrue},
	{addonv1alpha1.ConditionAvailable, metav1.ConditionFalse},
	{addonv1alpha1.ConditionAvailable, metav1.ConditionUnknown},
	{addonv1alpha1.ConditionProgressing, metav1.ConditionTrue},
}

// firstTrouble returns the first thing that is wrong or pending.
func firstTrouble(a *addonv1alpha1.ManagedClusterAddOn) string {
	if a.DeletionTimestamp != nil {
		return "being deleted, held by " + cmp.Or(strings.Join(a.Finalizers, ", "), "nothing")
	}
	c := troubleIn(a.Status.Conditions)
	p := apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionProgressing)
	if c == nil && p != nil && p.Reason != addonv1alpha1.ReasonCompleted {
		c = p
	}
	switch {
	case c != nil:
		return c.Type + ": " + cmp.Or(fleet.OneLine(c.Message), c.Reason)
	case apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionAvailable) == nil:
		return "nothing has reported yet whether it works"
	}
	return ""
}

// troubleIn returns the first condition that means trouble; nil for none.
func troubleIn(conditions []metav1.Condition) *metav1.Condition {
	for _, t := range troubles {
		if c := apimeta.FindStatusCondition(conditions, t.kind); c != nil && c.Status == t.bad {
			return c
		}
	}
	return nil
}
