// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/adopt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
)

// adopt takes the hub over from another operator, or shows what that changes. It ends the
// progress before it prints.
func (o *InitOptions) adopt(ctx context.Context, end func(), wanted hub.InitOptions) error {
	if o.Plan && !wanted.Reads() {
		wanted.DryRun = fleet.DryRunClient
	}
	result, err := adopt.Hub(ctx, adopt.Options{InitOptions: wanted})
	end()
	if err != nil {
		return err
	}
	u := o.f.UI
	if wanted.Reads() {
		return o.Output.Plan(u, "AdoptionPlan", result, result.Items)
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "AdoptionResult", result, fleet.PlannedNames(result.Items))
	}
	u.Say("hub/ocm-hub ready on %s in place of %s (%s)", wanted.Hub, result.From, result.Action)
	u.Say("way back:  %s", u.Own("kubectl ocm hub upgrade --back-out --context "+cmp.Or(wanted.Hub.Context, "<hub>")))
	return nil
}
