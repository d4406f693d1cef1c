// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// Vacant refuses a cluster with an agent that keeps another from joining: one of another
// distribution, of another hub, or one that is being removed. Without Hub, an agent of any hub
// is in the way; without Name, the cluster may have joined under any name. It only reads.
func Vacant(ctx context.Context, o Options) error {
	o.Klusterlet = cmp.Or(o.Klusterlet, operatorv1.DefaultKlusterletName)
	j := &join{Options: &o}
	var err error
	if j.before, err = member.Read(ctx, o.Spoke, o.Klusterlet); err != nil {
		return err
	}
	if o.Hub != nil {
		if j.agent, _, err = trust.OfHub(ctx, o.Hub); err != nil {
			return err
		}
	}
	if j.before != nil && o.Name == "" {
		o.Name = j.before.Name
	}
	if err := j.checkOthers(ctx); err != nil {
		return err
	}
	if b := j.before; o.Hub == nil && b != nil && b.Hub != nil && b.Klusterlet.DeletionTimestamp == nil {
		return fleet.Refuse(o.Spoke.String()+" is joined already", "its agent uses the hub at "+b.Hub.Server, UnjoinFirst.On(o.Spoke, "cluster", b.Name))
	}
	if err := j.checkElsewhere(ctx); err != nil || o.Hub == nil {
		return err
	}
	return j.checkBeside(ctx)
}

// Leaving refuses a cluster whose former agent is not gone yet. It only reads.
func Leaving(ctx context.Context, spoke *fleet.Cluster) error {
	return (&join{Options: &Options{Spoke: spoke, Klusterlet: operatorv1.DefaultKlusterletName}}).checkLeaving(ctx)
}
