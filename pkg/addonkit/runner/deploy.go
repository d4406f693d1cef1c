// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/deploy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/health"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// pass is one reconciliation of what an instance has on its cluster.
type pass struct {
	addonkit.Instance
	key   reconcile.Key
	addOn addonkit.AddOn
	state deploy.State
	// own are the author's manifest options.
	own []workv1.ManifestConfigOption
}

// reconcileDeploy brings an instance to its cluster, and reports its state.
func (r *runner) reconcileDeploy(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	i, there := r.instance(key)
	if !there {
		r.drawn.forget(key)
		return reconcile.Result{}, nil // works on its own cluster are deleted with it
	}
	addOn, ok := r.find(i.AddOn)
	if !ok {
		return reconcile.Result{}, nil
	}
	p := &pass{Instance: i, key: key, addOn: addOn, state: deploy.State{
		AddOn: i.AddOn, Cluster: i.Cluster, Hosting: r.hosting(addOn, i), Options: addOn.Options(), Works: r.works.list(key), Now: r.Clock.Now(),
	}}
	if p.state.Waits() {
		return reconcile.Result{}, nil
	}
	p.state.Mark, _ = addonkit.Mark(i.AddOn.Status.ConfigReferences)
	from, traced := inputsOf(addOn, i)
	traced = traced && p.state.Hosting == nil
	if traced && r.redraw(p, from) {
		if plan := p.decide(); !deploy.Writes(plan) {
			return r.deploying.Execute(ctx, i.AddOn, plan)
		}
	}
	p.render(ctx)
	plan := p.decide()
	if traced && p.state.RenderError == nil {
		r.drawn.hold(key, from, p.draw())
	}
	if a, ok := addOn.(addonkit.Warner); ok && i.Cluster != nil && plan.Object != nil {
		r.warned.add(&plan, i.AddOn, a.Warnings(i))
	}
	return r.deploying.Execute(ctx, i.AddOn, plan)
}

// render asks the add-on what it deploys.
func (p *pass) render(ctx context.Context) {
	if p.Cluster == nil {
		return
	}
	p.state.RenderError = guarded(ctx, func() error {
		objects, err := p.addOn.Manifests(ctx, p.Instance)
		if err == nil {
			p.state.Manifests, err = addonkit.Read(objects)
		}
		return err
	})
	if a, ok := p.addOn.(addonkit.Configured); ok {
		p.own = a.ManifestConfigs(p.Instance)
	}
}

// decide plans what to do with the rendered manifests.
func (p *pass) decide() reconcile.Plan {
	var look addonkit.Health
	if a, ok := p.addOn.(addonkit.Healthy); ok {
		look = a.Health()
	}
	inspected, works, unknown := p.state.Inspected()
	p.state.Configs = deploy.MergeConfigs(health.Configs(look, inspected), p.own)
	plan := deploy.Decide(p.state)
	if object, ok := plan.Object.(*addonv1alpha1.ManagedClusterAddOn); ok && p.AddOn.DeletionTimestamp == nil && unknown == nil {
		health.Set(health.State{Instance: p.Instance, Health: look, Manifests: inspected, Works: works, Now: p.state.Now}, object)
	}
	return plan
}

// draw returns what is kept of a rendering.
func (p *pass) draw() *drawn {
	out := &drawn{Of: metav1.ObjectMeta{UID: p.AddOn.UID}, Configs: p.own}
	for _, m := range p.state.Manifests {
		out.Manifests = append(out.Manifests, deploy.OutlineOf(m))
	}
	return out
}

// redraw reuses what is kept of the last rendering if the inputs are the same, so that a
// changed status does not render again.
func (r *runner) redraw(p *pass, from digest.Sum) bool {
	kept, ok := r.drawn.recall(p.key, from)
	if !ok {
		return false
	}
	manifests := make([]addonkit.Manifest, 0, len(kept.Manifests))
	for _, o := range kept.Manifests {
		m, err := o.Manifest()
		if err != nil {
			return false
		}
		manifests = append(manifests, m)
	}
	p.state.Manifests, p.own = manifests, kept.Configs
	return true
}
