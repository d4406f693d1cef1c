// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"

	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
)

const (
	// stepPatience is how long one step of an add-on may take before its absence is a finding.
	stepPatience = time.Minute
	// maxOnClusters bounds the clusters of one add-on that are reported one by one.
	maxOnClusters = 20
)

// addOnFleet is the add-ons of a hub and everything needed to check them.
type addOnFleet struct {
	registered map[string]*addonv1alpha1.ClusterManagementAddOn
	instances  map[string][]*addonv1alpha1.ManagedClusterAddOn
	clusters   map[string]*clusterv1.ManagedCluster
	placements map[addonv1alpha1.PlacementRef]*clusterv1beta1.Placement
	// templates are the names of the AddOnTemplates.
	templates map[string]bool
	// requests are certificate requests that are pending or were denied, by add-on and
	// cluster.
	requests map[addon.Pair][]*unstructured.Unstructured
}

// addOns checks every add-on of the hub, or the named ones. Those that work everywhere share
// one line.
func (c *checking) addOns(ctx context.Context) []Area {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	all, err := c.readAddOnFleet(ctx)
	if err != nil {
		return []Area{{"add-ons", []Finding{unreadable(CodeAddOnRegistered, err)}}}
	}
	names := c.o.AddOns
	if len(names) == 0 {
		names = sets.List(sets.KeySet(all.registered).Union(sets.KeySet(all.instances)))
	}
	var out []Area
	for _, name := range names {
		if found := c.addOn(all, name); len(found) > 0 {
			out = append(out, Area{"add-on " + name, found})
		}
	}
	if well := len(names) - len(out); well > 0 {
		out = slices.Insert(out, 0, Area{"add-ons", good(CodeAddOnHealth, "%d of %d work on all their clusters", well, len(names))})
	}
	return out
}

// readAddOnFleet reads the add-ons and, where there are any, what they depend on: six list
// requests at most.
func (c *checking) readAddOnFleet(ctx context.Context) (*addOnFleet, error) {
	all := &addOnFleet{
		registered: map[string]*addonv1alpha1.ClusterManagementAddOn{}, instances: map[string][]*addonv1alpha1.ManagedClusterAddOn{},
		clusters: map[string]*clusterv1.ManagedCluster{}, placements: map[addonv1alpha1.PlacementRef]*clusterv1beta1.Placement{},
		templates: map[string]bool{}, requests: map[addon.Pair][]*unstructured.Unstructured{},
	}
	var registered, instances, clusters, places, templates, requests []unstructured.Unstructured
	err := fleet.ListTogether(ctx, c.o.Hub, fleet.Into(&registered, fleet.Query{Resource: fleet.ManagementAddOns}),
		fleet.Into(&instances, fleet.Query{Resource: fleet.ClusterAddOns}))
	c.overlay(&registered, "ClusterManagementAddOn")
	c.overlay(&instances, "ManagedClusterAddOn")
	if err != nil || len(registered)+len(instances) == 0 {
		return all, err
	}
	if err := fleet.ListTogether(ctx, c.o.Hub,
		fleet.Into(&clusters, fleet.Query{Resource: fleet.ManagedClusters}), fleet.Into(&places, fleet.Query{Resource: fleet.Placements}),
		fleet.Into(&templates, fleet.Query{Resource: fleet.AddOnTemplates}),
		fleet.Into(&requests, fleet.Query{Resource: fleet.SigningRequests, Labels: addonv1alpha1.LabelAddOnName}),
	); err != nil {
		return nil, err
	}
	c.overlay(&clusters, "ManagedCluster")
	c.overlay(&places, "Placement")
	c.overlay(&templates, "AddOnTemplate")
	cluster.AddNames(all.templates, templates)
	for i := range requests {
		u := &requests[i]
		p := addon.Pair{AddOn: u.GetLabels()[addonv1alpha1.LabelAddOnName], Cluster: u.GetLabels()[clusterv1.LabelClusterName]}
		all.requests[p] = append(all.requests[p], u)
	}
	return all, cmp.Or(
		placement.TakeUp(&registered, func(a *addonv1alpha1.ClusterManagementAddOn) { all.registered[a.Name] = a }),
		placement.TakeUp(&instances, func(a *addonv1alpha1.ManagedClusterAddOn) {
			all.instances[a.Name] = append(all.instances[a.Name], a)
		}),
		placement.TakeUp(&clusters, func(mc *clusterv1.ManagedCluster) { all.clusters[mc.Name] = mc }),
		placement.TakeUp(&places, func(p *clusterv1beta1.Placement) {
			all.placements[addonv1alpha1.PlacementRef{Namespace: p.Namespace, Name: p.Name}] = p
		}),
	)
}

// addOn checks one add-on and its instances; no findings mean that all is well.
func (c *checking) addOn(all *addOnFleet, name string) []Finding {
	a, instances := all.registered[name], all.instances[name]
	var out []Finding
	switch {
	case a == nil && len(instances) == 0:
		return []Finding{failure(CodeAddOnRegistered, fmt.Sprintf("there is no add-on %q", name), "", naming.ListAddOns.On(c.o.Hub))}
	case a == nil:
		out = append(out, failure(CodeAddOnRegistered, "it is on "+fleet.Many(len(instances), "cluster")+", but it is not registered",
			"without a ClusterManagementAddOn nothing of it is deployed", RegisterAddOn.On(c.o.Hub, "addon", name)))
	default:
		out = append(c.strategy(all, a), c.templates(all, a)...)
	}
	slices.SortFunc(instances, func(x, y *addonv1alpha1.ManagedClusterAddOn) int { return cmp.Compare(x.Namespace, y.Namespace) })
	reported, left := 0, 0
	for _, one := range instances {
		f := c.instance(all, a, one)
		switch {
		case f.Code == "":
		case reported == maxOnClusters:
			left++
		default:
			reported++
			f.Title = "on " + one.Namespace + ": " + f.Title
			out = append(out, f)
		}
	}
	if left > 0 {
		out = append(out, warning(CodeAddOnHealth, "it is unhealthy on "+fleet.Many(left, "more cluster"), "",
			fleet.ShowAddOn.On(c.o.Hub, "addon", name, "cluster", "")))
	}
	return out
}

// strategy returns what is wrong with the placements of an add-on, and with its rollouts.
func (c *checking) strategy(all *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn) []Finding {
	if a.Spec.InstallStrategy.Type != addonv1alpha1.InstallStrategyPlacements {
		return nil
	}
	if !addon.ManagedByHub(a) {
		const lifecycle = addonv1alpha1.AnnotationLifecycle
		return []Finding{warning(CodeAddOnRegistered, "it names placements, but installs itself",
			fmt.Sprintf("its annotation %s is %q, so that the hub ignores placements for it", lifecycle, a.Annotations[lifecycle]),
			LeaveToHub.On(c.o.Hub, "addon", a.Name, "annotation", lifecycle+"="+addonv1alpha1.LifecycleAddOnManager))}
	}
	var out []Finding
	for _, ref := range a.Spec.InstallStrategy.Placements {
		text := ref.Namespace + "/" + ref.Name
		p := all.placements[ref.PlacementRef]
		if p != nil && p.Annotations[clusterv1beta1.AnnotationSchedulingDisable] == "true" {
			continue // another controller decides it, and writes only decisions
		}
		f := Finding{Code: CodeAddOnPlacement, Severity: SeverityWarning, Fix: CheckPlacement.On(c.o.Hub, "placement", text)}
		switch {
		case p == nil:
			f.Severity, f.Title, f.Cause = SeverityError, "there is no placement "+text, "its install strategy names it"
			f.Fix = CreatePlacement.On(c.o.Hub, "name", ref.Name, "namespace", ref.Namespace)
		case isSilent(p, c.run.Now()):
			f.Title = "placement " + text + " is not decided yet"
			f.Cause = "until then the add-on is neither added to clusters nor removed from them"
		default:
			found := apimeta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.ConditionSatisfied)
			if found == nil || found.Reason == clusterv1beta1.ReasonAllDecisionsScheduled || p.Status.NumberOfSelectedClusters > 0 {
				continue
			}
			f.Title, f.Cause = "placement "+text+" selects no cluster", fleet.OneLine(found.Message)
		}
		out = append(out, f)
	}
	for _, ref := range addon.StoppedRollouts(a) {
		out = append(out, failure(CodeAddOnRollout, fmt.Sprintf("its rollout to placement %s/%s has stopped", ref.Namespace, ref.Name),
			"more clusters have timed out than maxFailures allows; it resumes when they recover", ResumeRollout.On(c.o.Hub, "addon", a.Name)))
	}
	return out
}

// templates returns a finding for each default template that does not exist.
func (c *checking) templates(all *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn) []Finding {
	var out []Finding
	for _, s := range a.Spec.SupportedConfigs {
		if d := addon.DefaultOf(s); ofTemplate(s) && d != nil && !all.templates[d.Name] {
			out = append(out, failure(CodeAddOnTemplate, fmt.Sprintf("there is no AddOnTemplate %q", d.Name), "it is the default of the add-on",
				CreateVersion.On(c.o.Hub, "addon", a.Name, "version", cmp.Or(addon.VersionOf(a.Name, d.Name), "VERSION"))))
		}
	}
	return out
}

func ofTemplate(s addonv1alpha1.ConfigMeta) bool {
	return s.Group == addonv1alpha1.GroupName && s.Resource == addonv1alpha1.ResourceTemplate
}

// isTemplated reports whether the hub renders the add-on from templates.
func isTemplated(a *addonv1alpha1.ClusterManagementAddOn) bool {
	return a != nil && slices.ContainsFunc(a.Spec.SupportedConfigs, ofTemplate)
}

// conditionCause returns the message of a condition, or its reason when it has no message.
func conditionCause(a *addonv1alpha1.ManagedClusterAddOn, kind string) string {
	found := apimeta.FindStatusCondition(a.Status.Conditions, kind)
	if found == nil {
		return ""
	}
	return strings.TrimSpace(cmp.Or(fleet.OneLine(found.Message), found.Reason))
}
