// SPDX-License-Identifier: Apache-2.0

package fleet

import (
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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// awaitEnabled waits until the add-on works on the cluster, as its spec is now and with
// the configurations that are said of this cluster as they are now: one that worked
// before does so until they get there. Of labels and annotations nobody tells when
// they were seen. Contract: addon.md 3, 4.5, 4.8.
func (c *addOnChange) awaitEnabled(ctx context.Context, p pair) error {
	var last *unstructured.Unstructured
	missing := "nobody has said yet whether it works"
	at := c.run.place(p.addOn + " on " + p.cluster)
	err := await.Objects(ctx, await.Query{Client: c.Hub.Client, Resource: clusterAddOns, Namespace: p.cluster, Name: p.addOn, Clock: c.run.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, &Error{Message: describe(managedAddOn(p)) + " was deleted while it was waited for", Fix: "run this again"}
			}
			last = items[0]
			a, err := typed.FromUnstructured[addonv1alpha1.ManagedClusterAddOn](last)
			if err != nil {
				return false, err
			}
			if err := c.unsupported(a); err != nil {
				return false, err
			}
			if !conditionTrue(last, addonv1alpha1.ConditionAvailable) {
				at.see(addOnSight(last, missing))
				return false, nil
			}
			if missing = behind(a); missing == "" {
				missing = unapplied(a)
			}
			if missing == "" {
				missing, err = c.notThere(ctx, a)
			}
			if missing != "" {
				at.see(missing)
			}
			return missing == "", err
		})
	return c.run.timedOut(ctx, at.end(err, "available"), "the add-on "+p.addOn+" on "+p.cluster+" to be available", func(context.Context) *blocker {
		b := &blocker{cause: missing, fix: "kubectl ocm addon status " + p.addOn + " -c " + p.cluster + c.Hub.flag()}
		if last == nil {
			return b
		}
		for _, t := range troubles {
			if found := apimeta.FindStatusCondition(conditionsOf(last), t.kind); found != nil && found.Status == t.bad {
				return blockedBy(found, b.fix)
			}
		}
		return b
	})
}

// addOnSight is what an add-on says that is not available; otherwise stands where it says
// nothing.
func addOnSight(u *unstructured.Unstructured, otherwise string) string {
	c := apimeta.FindStatusCondition(conditionsOf(u), addonv1alpha1.ConditionAvailable)
	if c == nil {
		return otherwise
	}
	return fmt.Sprintf("%s=%s: %s", c.Type, c.Status, oneLine(c.Message))
}

// behind names what the add-on's controller has not done yet for the spec as it is now;
// empty when it has, or does not tell of which spec it speaks, as the field's framework.
// ManifestApplied is of the spec when the works are as they are wanted and applied.
func behind(a *addonv1alpha1.ManagedClusterAddOn) string {
	says := func(kind string) bool {
		c := apimeta.FindStatusCondition(a.Status.Conditions, kind)
		return c == nil || c.ObservedGeneration == 0 || c.ObservedGeneration >= a.Generation
	}
	switch {
	case !says(addonv1alpha1.ConditionRegistrationApplied):
		return "its controller has not seen the change yet"
	case !says(addonv1alpha1.ConditionManifestApplied):
		return "its manifests are not applied yet as they are wanted now"
	case a.Annotations[addonv1alpha1.AnnotationHostingClusterName] != "" && !says(addonv1alpha1.ConditionHostingManifestApplied):
		return "its manifests are not applied yet on the hosting cluster as they are wanted now"
	}
	return ""
}

// unapplied tells which of its objects could not be applied; empty for none. An add-on
// whose agent of before goes on works, and is not what was asked for.
func unapplied(a *addonv1alpha1.ManagedClusterAddOn) string {
	for _, kind := range []string{addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ConditionHostingManifestApplied} {
		if c := apimeta.FindStatusCondition(a.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			return oneLine(c.Message)
		}
	}
	return ""
}

// unsupported is the error that a configuration will never get there.
func (c *addOnChange) unsupported(a *addonv1alpha1.ManagedClusterAddOn) error {
	p := apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionProgressing)
	if p == nil || p.Reason != addonv1alpha1.ReasonConfigurationUnsupported || p.ObservedGeneration != a.Generation || !managedByHub(c.addOns[a.Name]) {
		return nil
	}
	return &Error{Message: fmt.Sprintf("the add-on %q on %s cannot use a configuration", a.Name, a.Namespace), Cause: oneLine(p.Message),
		Fix: fmt.Sprintf("kubectl edit managedclusteraddon %s -n %s%s      and take it out of spec.configs", a.Name, a.Namespace, c.Hub.flag())}
}

// notThere names what of the cluster's own configurations is not applied yet as it is
// now; empty when all are. Of an add-on that the hub does not manage nobody tells.
func (c *addOnChange) notThere(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn) (string, error) {
	if !managedByHub(c.addOns[a.Name]) {
		return "", nil
	}
	for _, config := range a.Spec.Configs {
		text := strings.TrimPrefix(config.Namespace+"/"+config.Name, "/")
		at := slices.IndexFunc(a.Status.ConfigReferences, func(r addonv1alpha1.ConfigReference) bool {
			return r.ConfigGroupResource == config.ConfigGroupResource && r.DesiredConfig != nil && r.DesiredConfig.ConfigReferent == config.ConfigReferent
		})
		if at < 0 {
			return config.Resource + " " + text + " is not given to it yet", nil
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
			return config.Resource + " " + text + " is not given to it as it is now", nil
		}
	}
	return "", nil
}

// hashOf is the hash of a configuration as it is; empty when there is none.
func (c *addOnChange) hashOf(ctx context.Context, config addonv1alpha1.AddOnConfig) (string, error) {
	resource, err := c.resourceOf(config.ConfigGroupResource)
	if err != nil {
		return "", err
	}
	u, err := c.Hub.Client.Resource(resource).Namespace(config.Namespace).Get(ctx, config.Name, getOptions)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", explain("reading "+config.Resource+" "+config.Name, c.Hub, err)
	}
	return addonkit.SpecHash(u.Object)
}

// resourceOf finds the version of a kind of configurations.
func (c *addOnChange) resourceOf(kind addonv1alpha1.ConfigGroupResource) (schema.GroupVersionResource, error) {
	if kind.Group == addonv1alpha1.GroupName {
		return addonv1alpha1.GroupVersion.WithResource(kind.Resource), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served == nil {
		var err error
		if c.served, err = c.Hub.kinds(); err != nil {
			return schema.GroupVersionResource{}, err
		}
	}
	found, err := c.served.named(strings.TrimSuffix(kind.Resource+"."+kind.Group, "."))
	return found.resource, err
}
