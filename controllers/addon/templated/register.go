// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"cmp"
	"context"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/runner"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Name is part of the ids of the loops: addon.template.registration, .deploy and
// .request.
const Name = "template"

// Config configures the loops.
type Config struct {
	// Client reads and writes; Manager grants agents their rights and certificates, and reads
	// the signing CAs.
	Client, Manager dynamic.Interface
	// Clock is the time source for conditions, deadlines and certificates.
	Clock clock.PassiveClock
	// Contents caches the templates and configurations.
	Contents *config.Contents
	// AddOns reports which of them are assigned to an instance.
	AddOns *selection.Index
	// OnGrant registers a function that is called when a right may have been granted.
	OnGrant func(func())
}

// Register adds the loops to m.
func Register(m *manager.Manager, c Config) {
	f := newFamily(c.Manager, c.Clock, c.Contents, c.AddOns)
	many := runner.NewMany(runner.Config{Client: c.Client, Rights: c.Manager, Clock: c.Clock}, runner.Family{
		Name: Name, Find: f.addOnOf, Label: addonv1alpha1.LabelAddOnTemplateName, Slim: slim,
	})
	manager.Watch(m, &addonv1alpha1.ClusterManagementAddOn{}, func(old, current *addonv1alpha1.ClusterManagementAddOn) {
		if name := cmp.Or(current, old).Name; f.setListed(name, usesTemplates(current)) {
			many.LookAll(name)
		}
	})
	look := func(at addonv1alpha1.AddOnConfig) {
		for _, who := range f.takeWaiting(at) {
			many.Look(who)
		}
	}
	c.Contents.OnChange(look)
	c.AddOns.OnConcern(func(name string) { look(ofAddOn(name)) })
	c.OnGrant(many.Regrant)
	m.AddLoops(many.Loops(), func(ctx context.Context) error {
		if err := c.Contents.WaitSynced(ctx); err != nil {
			return err
		}
		return many.Run(ctx)
	})
}
