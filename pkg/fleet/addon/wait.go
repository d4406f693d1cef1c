// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// awaitEnabled waits until the add-on works on the cluster with its current spec and the
// current configurations of this cluster: an add-on that worked before is still available
// until they are applied. Nothing records when labels and annotations are observed.
func (c *change) awaitEnabled(ctx context.Context, p Pair) error {
	var last []metav1.Condition
	missing := "nothing has reported yet whether it works"
	at := c.run.Place(p.AddOn + " on " + p.Cluster)
	err := await.Objects(ctx, await.Query{Client: c.Hub.Client, Resource: fleet.ClusterAddOns, Namespace: p.Cluster, Name: p.AddOn, Clock: c.run.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, &fleet.Error{Message: fleet.Describe(managedAddOn(p)) + " was deleted during the wait",
					Fix: fleet.Advice("run this again")}
			}
			a, err := typed.FromUnstructured[addonv1alpha1.ManagedClusterAddOn](items[0])
			if err != nil {
				return false, err
			}
			last = a.Status.Conditions
			if err := c.unsupportedConfigError(a); err != nil {
				return false, err
			}
			if !apimeta.IsStatusConditionTrue(last, addonv1alpha1.ConditionAvailable) {
				at.See(describeUnavailable(last, missing))
				return false, nil
			}
			if missing = cmp.Or(pendingChange(a), unappliedObjects(a)); missing == "" {
				missing, err = c.pendingConfig(ctx, a)
			}
			if missing != "" {
				at.See(missing)
			}
			return missing == "", err
		})
	return c.run.TimedOut(ctx, at.End(err, "available"), "the add-on "+p.AddOn+" on "+p.Cluster+" to be available", func(context.Context) *fleet.Blocker {
		show := fleet.ShowAddOn.On(c.Hub, "addon", p.AddOn, "cluster", p.Cluster)
		if found := troubleIn(last); found != nil {
			return fleet.BlockedBy(found, show)
		}
		return &fleet.Blocker{Cause: missing, Fix: show}
	})
}

// describeUnavailable describes the add-on that is not available; otherwise is the fallback when its
// conditions say nothing.
func describeUnavailable(conditions []metav1.Condition, otherwise string) string {
	c := apimeta.FindStatusCondition(conditions, addonv1alpha1.ConditionAvailable)
	if c == nil {
		return otherwise
	}
	return fmt.Sprintf("%s=%s: %s", c.Type, c.Status, fleet.OneLine(c.Message))
}

// pendingChange returns what the add-on's controller has not yet done for the current spec; empty
// when everything is done, or when the controller, like addon-framework, does not record the
// generation. ManifestApplied is about the current spec when the works are up to date and
// applied.
func pendingChange(a *addonv1alpha1.ManagedClusterAddOn) string {
	says := func(kind string) bool {
		c := apimeta.FindStatusCondition(a.Status.Conditions, kind)
		return c == nil || c.ObservedGeneration == 0 || c.ObservedGeneration >= a.Generation
	}
	switch {
	case !says(addonv1alpha1.ConditionRegistrationApplied):
		return "its controller has not seen the change yet"
	case !says(addonv1alpha1.ConditionManifestApplied):
		return "its current manifests are not applied yet"
	case a.Annotations[addonv1alpha1.AnnotationHostingClusterName] != "" && !says(addonv1alpha1.ConditionHostingManifestApplied):
		return "its current manifests are not applied yet on the hosting cluster"
	}
	return ""
}

// unappliedObjects returns which of the add-on's objects could not be applied; empty for none. An
// add-on whose previous agent still works is not what was asked for.
func unappliedObjects(a *addonv1alpha1.ManagedClusterAddOn) string {
	for _, kind := range []string{addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ConditionHostingManifestApplied} {
		if c := apimeta.FindStatusCondition(a.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			return fleet.OneLine(c.Message)
		}
	}
	return ""
}

// unsupportedConfigError is the error for a configuration that will never be applied.
func (c *change) unsupportedConfigError(a *addonv1alpha1.ManagedClusterAddOn) error {
	p := apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionProgressing)
	if p == nil || p.Reason != addonv1alpha1.ReasonConfigurationUnsupported || p.ObservedGeneration != a.Generation || !ManagedByHub(c.addOns[a.Name]) {
		return nil
	}
	return &fleet.Error{Message: fmt.Sprintf("the add-on %q on %s cannot use a configuration", a.Name, a.Namespace), Cause: fleet.OneLine(p.Message),
		Fix: DropConfig.On(c.Hub, "addon", a.Name, "cluster", a.Namespace)}
}

// pendingConfig returns which of the cluster's own configurations is not yet applied in its current
// version; empty when all are. Nothing reports that for an add-on that the hub does not
// manage.
func (c *change) pendingConfig(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn) (string, error) {
	if !ManagedByHub(c.addOns[a.Name]) {
		return "", nil
	}
	for _, config := range a.Spec.Configs {
		text := strings.TrimPrefix(config.Namespace+"/"+config.Name, "/")
		at := slices.IndexFunc(a.Status.ConfigReferences, func(r addonv1alpha1.ConfigReference) bool {
			return r.ConfigGroupResource == config.ConfigGroupResource && r.DesiredConfig != nil && r.DesiredConfig.ConfigReferent == config.ConfigReferent
		})
		if at < 0 {
			return config.Resource + " " + text + " is not assigned to it yet", nil
		}
		desired, applied := a.Status.ConfigReferences[at].DesiredConfig, a.Status.ConfigReferences[at].LastAppliedConfig
		if desired.SpecHash == "" || applied == nil || *applied != *desired {
			return config.Resource + " " + text + " is not applied yet", nil
		}
		hash, err := c.hashOf(ctx, config)
		if err != nil {
			return "", err
		}
		if hash != desired.SpecHash {
			return config.Resource + " " + text + " is not assigned to it in its current version", nil
		}
	}
	return "", nil
}

// hashOf returns the hash of a configuration as it is now; empty when it does not exist.
func (c *change) hashOf(ctx context.Context, config addonv1alpha1.AddOnConfig) (string, error) {
	resource, err := c.resourceOf(config.ConfigGroupResource)
	if err != nil {
		return "", err
	}
	u, err := c.Hub.Client.Resource(resource).Namespace(config.Namespace).Get(ctx, config.Name, fleet.GetOptions)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fleet.Explain("reading "+config.Resource+" "+config.Name, c.Hub, err)
	}
	return addonkit.SpecHash(u.Object)
}

// resourceOf finds the served version of a kind of configuration.
func (c *change) resourceOf(kind addonv1alpha1.ConfigGroupResource) (schema.GroupVersionResource, error) {
	if kind.Group == addonv1alpha1.GroupName {
		return addonv1alpha1.GroupVersion.WithResource(kind.Resource), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served == nil {
		var err error
		if c.served, err = c.Hub.Kinds(); err != nil {
			return schema.GroupVersionResource{}, err
		}
	}
	found, err := c.served.Named(strings.TrimSuffix(kind.Resource+"."+kind.Group, "."))
	return found.Resource, err
}
