// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Resume resumes rollouts of add-ons that have stopped because more clusters timed out than
// maxFailures allows: clusters that have timed out so far no longer hold it up, and later
// failures count from zero. An add-on without a stopped rollout is unchanged, and Warn is
// called. With Wait it returns when the hub has recorded the request. The annotation is an
// extension of this project.
func Resume(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &change{Options: o, run: r}
	addOns, err := c.readAddOns(ctx)
	if err != nil {
		return Result{}, err
	}
	var out Result
	for _, a := range addOns {
		change, err := c.resume(ctx, a)
		if change.Object != nil {
			out.Items = append(out.Items, change)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func (c *change) resume(ctx context.Context, a *addonv1alpha1.ClusterManagementAddOn) (fleet.Change, error) {
	u := fleet.Named(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"), "", a.Name)
	stopped := StoppedRollouts(a)
	switch {
	case !ManagedByHub(a):
		return fleet.Change{}, fleet.Refuse(fmt.Sprintf("the add-on %q rolls itself out", a.Name), "its annotation "+addonv1alpha1.AnnotationLifecycle+
			" says so, and the hub holds nothing back",
			fleet.Advice("look at the add-on's own controller"))
	case len(stopped) == 0:
		c.warn("there is nothing to resume: %s", nothingStopped(a))
		return write.Merge(ctx, c.run, c.Hub, u)
	}
	request := c.run.Given.Clock.Now().UTC().Format(time.RFC3339)
	u.SetAnnotations(map[string]string{addonv1alpha1.AnnotationResumeRollout: request})
	change, err := write.Merge(ctx, c.run, c.Hub, u)
	if err != nil {
		return fleet.Change{}, fleet.Explain("changing "+fleet.Describe(u), c.Hub, err)
	}
	if !c.Wait || c.Reads() {
		return change, nil
	}
	return change, c.awaitResumed(ctx, a.Name, request, stopped)
}

// StoppedRollouts returns the placements whose rollout has stopped.
func StoppedRollouts(a *addonv1alpha1.ClusterManagementAddOn) []addonv1alpha1.PlacementRef {
	var out []addonv1alpha1.PlacementRef
	for _, p := range a.Status.InstallProgressions {
		c := apimeta.FindStatusCondition(p.Conditions, addonv1alpha1.ConditionProgressing)
		if c != nil && strings.HasSuffix(c.Message, addonv1alpha1.MessageRolloutStopped) {
			out = append(out, p.PlacementRef)
		}
	}
	return out
}

// nothingStopped describes the rollouts of an add-on of which none has stopped.
func nothingStopped(a *addonv1alpha1.ClusterManagementAddOn) string {
	if !isInstalledByPlacements(a) {
		return "no placement installs " + a.Name + ", so that every cluster has its configurations at once"
	}
	parts := []string{"no rollout of " + a.Name + " has stopped"}
	for _, p := range a.Status.InstallProgressions {
		if c := apimeta.FindStatusCondition(p.Conditions, addonv1alpha1.ConditionProgressing); c != nil {
			parts = append(parts, "placement "+p.Namespace+"/"+p.Name+": "+fleet.OneLine(c.Message))
		}
	}
	return strings.Join(parts, "; ")
}

// awaitResumed waits until the hub has recorded the request in every progression that had
// stopped, or has continued it for another reason.
func (c *change) awaitResumed(ctx context.Context, name, request string, stopped []addonv1alpha1.PlacementRef) error {
	holds := func(p addonv1alpha1.InstallProgression) bool {
		noted := apimeta.FindStatusCondition(p.Conditions, addonv1alpha1.ConditionResumed)
		return slices.Contains(stopped, p.PlacementRef) && (noted == nil || noted.Message != addonv1alpha1.ResumedBy(request))
	}
	c.run.Step("rollout of " + name)
	c.run.Detail("the hub has not processed the request")
	err := await.Objects(ctx, await.Query{Client: c.Hub.Client, Resource: fleet.ManagementAddOns, Name: name, Clock: c.run.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, naming.NoAddOn(name, c.Hub)
			}
			a, err := typed.FromUnstructured[addonv1alpha1.ClusterManagementAddOn](items[0])
			if err != nil {
				return false, err
			}
			return !slices.ContainsFunc(a.Status.InstallProgressions, holds), nil
		})
	if err == nil {
		c.run.Done("resumed")
		return nil
	}
	return c.run.Fail(c.run.TimedOut(ctx, err, "the rollout of "+name+" to resume", func(context.Context) *fleet.Blocker {
		return &fleet.Blocker{Cause: "the hub has not processed the request; it is stored and stays in effect", Fix: fleet.CheckHub.On(c.Hub)}
	}))
}
