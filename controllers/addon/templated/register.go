// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"context"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/runner"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	hub "github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
)

// Name is part of the ids of the loops: addon.template.registration, .deploy and
// .request.
const Name = "template"

// Config of the loops.
type Config struct {
	// Client reads and writes.
	Client dynamic.Interface
	// Clock is that of conditions, deadlines and certificates.
	Clock clock.PassiveClock
	// Contents are the templates and configurations.
	Contents *config.Contents
}

// Register adds the loops to m.
func Register(m *hub.Manager, c Config) {
	f := newFamily(c.Client, c.Clock, c.Contents)
	many := runner.NewMany(runner.Config{Client: c.Client, Clock: c.Clock}, runner.Family{
		Name: Name, Find: f.find, Label: addonv1alpha1.LabelAddOnTemplateName, Slim: slim,
	})
	hub.Watch(m, &addonv1alpha1.ClusterManagementAddOn{}, func(old, current *addonv1alpha1.ClusterManagementAddOn) {
		name := ""
		if current != nil {
			name = current.Name
		} else {
			name = old.Name
		}
		if f.list(name, lists(current)) {
			many.LookAll(name)
		}
	})
	c.Contents.OnChange(func(at addonv1alpha1.AddOnConfig) {
		for _, who := range f.waited(at) {
			many.Look(who)
		}
	})
	m.AddLoops(many.Loops(), func(ctx context.Context) error {
		if err := c.Contents.WaitSynced(ctx); err != nil {
			return err
		}
		return many.Run(ctx)
	})
}
