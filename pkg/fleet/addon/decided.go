// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// decisionWait bounds the wait for the first decision of a placement. A running hub decides
// within a second.
const decisionWait = 30 * time.Second

// AwaitDecided waits until the hub has decided for the first time on the placement that
// EnableByPlacement would use, and on the other placements of the add-ons: until then the
// result of LostByPlacement is not known. It waits for half a minute at most; the error names
// the placement.
func AwaitDecided(ctx context.Context, o Options) error {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &change{Options: o, run: r}
	addOns, err := c.readAddOns(ctx)
	if err != nil {
		return err
	}
	seen := map[addonv1alpha1.PlacementRef]bool{}
	for _, a := range addOns {
		wanted, err := c.underPlacement(ctx, a)
		if err != nil {
			return err
		}
		for _, p := range wanted.Spec.InstallStrategy.Placements {
			if seen[p.PlacementRef] {
				continue
			}
			seen[p.PlacementRef] = true
			if err := c.awaitDecision(ctx, p.PlacementRef); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitDecision waits for the first decision of a placement. It does not wait for a placement
// that does not exist or that the hub is kept from deciding.
func (c *change) awaitDecision(ctx context.Context, ref addonv1alpha1.PlacementRef) error {
	if ok, err := c.isDecided(ctx, ref); ok || err != nil {
		return err
	}
	bound := min(decisionWait, c.run.Given.Timeout)
	short, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	text := ref.Namespace + "/" + ref.Name
	c.run.Step("first decision of placement " + text)
	err := await.Objects(short, await.Query{Client: c.Hub.Client, Resource: fleet.Placements, Namespace: ref.Namespace, Name: ref.Name, Clock: c.run.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			return len(items) == 0 || apimeta.FindStatusCondition(fleet.ConditionsOf(items[0]), clusterv1beta1.ConditionSatisfied) != nil, nil
		})
	var expired *await.Expired
	if !errors.As(err, &expired) {
		if err == nil {
			c.run.Done("")
		}
		return err
	}
	// Another controller than the hub may decide, and write nothing but decisions.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), fleet.DiagnosisTimeout)
	defer cancelLast()
	if ok, err := c.isDecided(last, ref); ok || err != nil {
		return err
	}
	return c.run.Fail(&fleet.Error{Kind: fleet.Timeout, Message: fmt.Sprintf("placement %s is not decided yet, after %s", text, bound),
		Cause: "so it is not known which clusters would lose the add-on; a running hub decides within a second",
		Fix:   CheckPlacementOrConfirm.On(c.Hub, "placement", text), Err: err})
}

// isDecided reports whether it is known what a placement selects.
func (c *change) isDecided(ctx context.Context, ref addonv1alpha1.PlacementRef) (bool, error) {
	p, err := c.readPlacement(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	if _, frozen := schedule.Trial(p); frozen || apimeta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.ConditionSatisfied) != nil {
		return true, nil
	}
	items, err := fleet.ListAll(ctx, c.Hub, fleet.Query{Resource: fleet.PlacementDecisions, Namespace: ref.Namespace, Labels: clusterv1beta1.LabelPlacement +
		"=" + ref.Name})
	if err != nil {
		return false, fleet.Explain(fmt.Sprintf("listing the decisions of placement %s/%s", ref.Namespace, ref.Name), c.Hub, err)
	}
	for i := range items {
		if len(cluster.ClustersOf(&items[i])) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// readPlacement reads a placement.
func (c *change) readPlacement(ctx context.Context, namespace, name string) (*clusterv1beta1.Placement, error) {
	text := namespace + "/" + name
	p, err := typed.Get[clusterv1beta1.Placement](ctx, c.Hub.Client, fleet.Placements, namespace, name)
	if apierrors.IsNotFound(err) && !fleet.IsNoKind(err) {
		return nil, naming.NoPlacement(text, c.Hub)
	}
	return p, fleet.Explain("reading placement "+text, c.Hub, err)
}
