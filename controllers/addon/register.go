// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"cmp"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/install"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/progress"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/templated"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/token"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
)

// Config configures the loops.
type Config struct {
	// Client writes objects, and reads instances, their works and configurations.
	Client dynamic.Interface
	// Manager, unless nil, grants rights, accounts and certificates to the agents of add-ons.
	// It acts as the account to which charts of add-ons grant these rights.
	Manager dynamic.Interface
	// Clock is the time source for conditions and rollouts.
	Clock clock.PassiveClock
}

// Register adds the loops to m.
func Register(m *manager.Manager, c Config) {
	c.Manager = cmp.Or(c.Manager, c.Client)
	instances, addOns := instance.New(m, c.Client, install.Manager), selection.NewIndex(m)
	contents, onGrant := config.NewContents(m, c.Client), watchGrants(m, c.Client)
	install.Register(m, install.Config{Client: c.Client, Clock: c.Clock, Instances: instances, AddOns: addOns})
	token.Register(m, token.Config{Client: c.Client, Manager: c.Manager, Clock: c.Clock, Instances: instances, OnGrant: onGrant})
	progress.Register(m, progress.Config{Client: c.Client, Clock: c.Clock, Instances: instances, AddOns: addOns, Contents: contents})
	templated.Register(m, templated.Config{Client: c.Client, Manager: c.Manager, Clock: c.Clock, Contents: contents, AddOns: addOns, OnGrant: onGrant})
}
