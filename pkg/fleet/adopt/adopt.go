// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Options say which hub to take over, and what to run there.
type Options struct {
	hub.InitOptions
}

// Result is the result of Hub and of Back.
type Result struct {
	// Context and Server are where it is.
	Context string `json:"context"`
	Server  string `json:"hub-apiserver"`
	// From and To are the images of the operator before and after.
	From string `json:"from"`
	To   string `json:"to"`
	// Action is configured, or unchanged when there was nothing to do.
	Action fleet.Action `json:"action"`
	// Items are the objects that the hub consists of, and what happens to them.
	Items []fleet.Planned `json:"items"`
}

// adoption is one run of Hub.
type adoption struct {
	Options
	*fleet.Run
	state *state
}

// Hub takes a hub over from the operator of another distribution and waits until our process
// serves it. All checks come before the first write; a dry run returns the plan. It continues
// an adoption that was interrupted.
func Hub(ctx context.Context, o Options) (Result, error) {
	if o.Image == "" {
		o.Image = hub.Images("", o.Version)[0]
	}
	o.Wait = true // what admits for the other hub ends only when ours answers
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	a := &adoption{Options: o, Run: r}
	result := Result{Context: o.Hub.Context, Server: o.Hub.Server(), To: o.Image, Action: fleet.Unchanged}
	r.Step("hub to adopt")
	applied, err := a.look(ctx)
	if err != nil {
		return result, r.Fail(err)
	}
	result.From, result.Items = o.Image, plan(a.state, applied)
	if before := a.before(); before != nil {
		result.From = hub.ImageOf(before)
	}
	if a.state.foreign() || fleet.Worst(applied) != fleet.Unchanged {
		result.Action = fleet.Configured
	}
	r.Done(result.From)
	if o.Reads() {
		return result, nil
	}
	return result, r.Fail(a.execute(ctx))
}

// look reads the hub, checks whether it can be adopted, and returns what applying ours changes.
func (a *adoption) look(ctx context.Context) ([]fleet.Change, error) {
	if _, err := fleet.ServerVersion(ctx, a.Hub); err != nil {
		return nil, err
	}
	var err error
	if a.state, err = gather(ctx, a.Hub); err != nil {
		return nil, err
	}
	if err := a.state.check(); err != nil {
		return nil, err
	}
	if err := checkRights(ctx, a.Hub); err != nil {
		return nil, err
	}
	dry := a.InitOptions
	dry.Progress, dry.DryRun, dry.Diff, dry.TakeOver, dry.KeepAPIs = nil, fleet.DryRunClient, false, a.takeOver, hub.KeepsAPIs(a.before())
	found, err := hub.Init(ctx, dry)
	if err != nil {
		return nil, err
	}
	return found.Items, a.state.count(ctx, a.Hub)
}

// before returns the Deployment of the other operator, as it is or as it was recorded.
func (a *adoption) before() *appsv1.Deployment {
	if a.state.operator != nil || a.state.record == nil {
		return a.state.operator
	}
	return recordedOperator(a.state.record)
}

// execute does the plan.
func (a *adoption) execute(ctx context.Context) error {
	o := a.InitOptions
	if a.state.foreign() {
		if err := a.write(ctx); err != nil {
			return err
		}
		if err := a.stopOperator(ctx); err != nil {
			return err
		}
	}
	o.TakeOver, o.KeepAPIs = a.takeOver, hub.KeepsAPIs(a.before())
	if _, err := hub.Init(ctx, o); err != nil {
		return err
	}
	a.Step("other hub removed")
	if err := a.removeRest(ctx); err != nil {
		return err
	}
	a.Done("clusters, works and add-ons stay")
	return nil
}

// write records what will be changed, unless an earlier run has.
func (a *adoption) write(ctx context.Context) error {
	if a.state.resumes() {
		return nil
	}
	a.Step("way back recorded")
	uid := ""
	if a.state.operator != nil {
		uid = string(a.state.operator.UID)
	}
	u, err := pack(uid, a.state.inOrder())
	if err != nil {
		return err
	}
	if a.state.record != nil {
		// The record is of an installation that is gone.
		u.SetResourceVersion(a.state.record.live.GetResourceVersion())
	}
	if _, err := write.One(ctx, a.Run, a.Hub, u); err != nil {
		return fleet.Explain("applying "+fleet.Describe(u), a.Hub, err)
	}
	a.Done("configmap " + operatorv1.NamespaceOperator + "/" + recordName)
	return nil
}

// stopOperator ends the other operator, and what it would go on with: its mark on the APIs,
// which keeps others from changing them, and what cannot be changed in place.
func (a *adoption) stopOperator(ctx context.Context) error {
	a.Step("other operator stopped")
	c := a.Hub
	if a.state.operator != nil {
		if err := workload.End(ctx, a.Run, c, a.state.operator); err != nil {
			return err
		}
		if err := fleet.Remove(ctx, c, fleet.Named(leaseKind, operatorv1.NamespaceOperator, operatorLock)); err != nil {
			return fleet.Explain("releasing the lease of the other operator", c, err)
		}
	}
	for _, service := range a.state.retyped() {
		if err := fleet.Remove(ctx, c, service); err != nil {
			return fleet.Explain("removing "+fleet.Describe(service), c, err)
		}
	}
	for _, u := range a.state.live {
		if u.GetKind() != "CustomResourceDefinition" || isOurs(u) || u.GetAnnotations()[operatorv1.AnnotationVersion] == "" {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:null}}}`, u.GetUID(), operatorv1.AnnotationVersion)
		_, err := c.Client.Resource(fleet.Definitions).Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fleet.FieldManager})
		if err != nil {
			return fleet.Explain("releasing "+fleet.Describe(u), c, err)
		}
	}
	a.Done("")
	return nil
}

// takeOver waits until our process runs, and then ends the other controllers; ours starts its
// loops when none of them is left. Admission of the other hub still answers.
func (a *adoption) takeOver(ctx context.Context, r *fleet.Run) error {
	c := a.Hub
	if len(a.state.others(deciding)) == 0 {
		return nil
	}
	r.Step("our process")
	if _, err := workload.Deployed(ctx, r, c, operatorv1.NamespaceOperator, manager); err != nil {
		return err
	}
	r.Done("waits for the other controllers to end")
	r.Step("other controllers stopped")
	if err := a.end(ctx, r, deciding); err != nil {
		return err
	}
	for _, name := range otherLocks {
		if err := fleet.Remove(ctx, c, fleet.Named(leaseKind, operatorv1.NamespaceHub, name)); err != nil {
			return fleet.Explain("releasing lease "+name, c, err)
		}
	}
	r.Done("")
	return nil
}

// end ends the Deployments with a role, all at once.
func (a *adoption) end(ctx context.Context, r *fleet.Run, which role) error {
	var all []*appsv1.Deployment
	for _, u := range a.state.others(which) {
		d, err := typed.FromUnstructured[appsv1.Deployment](u)
		if err != nil {
			return fmt.Errorf("reading %s: %w", fleet.Describe(u), err)
		}
		all = append(all, d)
	}
	return workload.End(ctx, r, a.Hub, all...)
}

// removeRest removes what is left of the other hub when ours serves.
func (a *adoption) removeRest(ctx context.Context) error {
	if err := a.end(ctx, a.Run, admitting); err != nil {
		return err
	}
	for _, u := range a.state.others(passive) {
		if err := fleet.Remove(ctx, a.Hub, u); err != nil {
			return fleet.Explain("removing "+fleet.Describe(u), a.Hub, err)
		}
	}
	return nil
}
