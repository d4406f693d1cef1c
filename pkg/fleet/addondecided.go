// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// decisionWait is how long the first decision of a placement is waited for. A hub that
// runs makes it within a second.
const decisionWait = 30 * time.Second

// AwaitDecided waits until the hub has decided for the first time on the placement that
// EnableByPlacement would use, and on those that the add-ons have besides: until then
// nobody can tell which add-ons LostByPlacement has to name. It waits for half a minute
// at most; the error names the placement.
func AwaitDecided(ctx context.Context, o AddOnOptions) error {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	c := &addOnChange{AddOnOptions: o, run: r}
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

// awaitDecision waits for the first decision of a placement; one that there is not, or
// that the hub is kept from deciding, is not waited for.
func (c *addOnChange) awaitDecision(ctx context.Context, ref addonv1alpha1.PlacementRef) error {
	if ok, err := c.decided(ctx, ref); ok || err != nil {
		return err
	}
	bound := min(decisionWait, c.run.common.Timeout)
	short, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	text := ref.Namespace + "/" + ref.Name
	c.run.step("first decision of placement " + text)
	err := await.Objects(short, await.Query{Client: c.Hub.Client, Resource: placements, Namespace: ref.Namespace, Name: ref.Name, Clock: c.run.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			return len(items) == 0 || apimeta.FindStatusCondition(conditionsOf(items[0]), clusterv1beta1.ConditionSatisfied) != nil, nil
		})
	var expired *await.Expired
	if !errors.As(err, &expired) {
		if err == nil {
			c.run.done("")
		}
		return err
	}
	// Somebody else than the hub may have decided, who says so in decisions alone.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), diagnosisTimeout)
	defer cancelLast()
	if ok, err := c.decided(last, ref); ok || err != nil {
		return err
	}
	return c.run.fail(&Error{Kind: Timeout, Message: fmt.Sprintf("placement %s is not decided yet, after %s", text, bound),
		Cause: "so nobody can tell from which clusters the add-on would go; the hub decides within a second, where it runs",
		Fix:   "kubectl ocm check placement " + text + c.Hub.flag() + "      or add --yes, and let the hub follow the decision when it comes", Err: err})
}

// decided tells whether what a placement selects can be told.
func (c *addOnChange) decided(ctx context.Context, ref addonv1alpha1.PlacementRef) (bool, error) {
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
	items, err := listAll(ctx, c.Hub, query{resource: placementDecisions, namespace: ref.Namespace, labels: clusterv1beta1.LabelPlacement + "=" + ref.Name})
	if err != nil {
		return false, explain(fmt.Sprintf("listing the decisions of placement %s/%s", ref.Namespace, ref.Name), c.Hub, err)
	}
	for i := range items {
		if len(clustersOf(&items[i])) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// readPlacement reads a placement.
func (c *addOnChange) readPlacement(ctx context.Context, namespace, name string) (*clusterv1beta1.Placement, error) {
	text := namespace + "/" + name
	p, err := typed.Get[clusterv1beta1.Placement](ctx, c.Hub.Client, placements, namespace, name)
	if apierrors.IsNotFound(err) && !isNoKind(err) {
		return nil, NoPlacement(text, c.Hub)
	}
	return p, explain("reading placement "+text, c.Hub, err)
}
