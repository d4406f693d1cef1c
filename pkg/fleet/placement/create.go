// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// CreateOptions say which placement to create.
type CreateOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Key is the namespace and name.
	Key types.NamespacedName
	// Spec is its spec.
	Spec clusterv1beta1.PlacementSpec
	// Overwrite replaces the spec of an existing placement.
	Overwrite bool
}

// Placement returns the object that the options describe, checked as the hub's admission
// checks it. warn is called for what has no effect.
func (o *CreateOptions) Placement(warn func(fleet.Note)) (*clusterv1beta1.Placement, error) {
	p := &clusterv1beta1.Placement{Spec: *o.Spec.DeepCopy()}
	p.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("Placement"))
	p.Namespace, p.Name = o.Key.Namespace, o.Key.Name
	return p, checkPlacement(p, warn)
}

// checkPlacement refuses a placement that cannot be scheduled, with its first problem. warn
// may be nil.
func checkPlacement(p *clusterv1beta1.Placement, warn func(fleet.Note)) error {
	for _, problem := range schedule.Validate(p) {
		switch {
		case problem.Severity == schedule.SeverityError:
			return fleet.Misuse(fmt.Sprintf("the placement cannot be scheduled: %s: %s", problem.Field, fleet.OneLine(problem.Message)), "",
				fleet.Advice(problem.Fix))
		case warn != nil:
			warn(fleet.Note{Text: problem.Text()})
		}
	}
	return nil
}

// Create creates a placement. An existing one with the same spec is unchanged; another spec is
// refused without Overwrite. The sets that it names must be bound in its namespace. warn is
// called with what may be a mistake.
func Create(ctx context.Context, o CreateOptions, warn func(fleet.Note)) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	p, err := o.Placement(warn)
	if err != nil {
		return Result{}, err
	}
	if err := o.checkBound(ctx, warn); err != nil {
		return Result{}, err
	}
	u, err := typed.ToUnstructured(p)
	if err != nil {
		return Result{}, fmt.Errorf("encoding %s: %w", o.Key, err)
	}
	var change fleet.Change
	err = write.Again(func() error {
		live, err := write.Live(ctx, o.Hub, u)
		switch {
		case err != nil:
			return fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
		case live == nil:
			change, err = write.Create(ctx, r, o.Hub, u)
		default:
			change, err = o.replace(ctx, p, live)
		}
		return err
	})
	err = write.Busy(u, err)
	if apierrors.IsNotFound(err) && !fleet.IsNoKind(err) {
		err = &fleet.Error{Message: fmt.Sprintf("there is no namespace %q on %s", o.Key.Namespace, o.Hub),
			Fix: fleet.CreateNamespace.On(o.Hub, "namespace", o.Key.Namespace), Err: err}
	}
	if err != nil {
		return Result{}, fleet.Explain("applying "+fleet.Describe(u), o.Hub, err)
	}
	return Result{Items: []fleet.Change{change}}, nil
}

// replace gives the existing placement another spec. Every field is set, so that nothing of
// the former spec remains, whoever wrote it.
func (o *CreateOptions) replace(ctx context.Context, p *clusterv1beta1.Placement, live *unstructured.Unstructured) (fleet.Change, error) {
	old, err := typed.FromUnstructured[clusterv1beta1.Placement](live)
	if err != nil {
		return fleet.Change{}, err
	}
	switch {
	case live.GetDeletionTimestamp() != nil:
		return fleet.Change{}, fleet.BeingDeleted(live)
	case sameSpec(&old.Spec, &p.Spec):
		return fleet.Change{Object: shownAs(o.Reads(), live), Action: fleet.Unchanged, Live: write.Clean(live)}, nil
	case !o.Overwrite && !o.Diff:
		return fleet.Change{}, fleet.Refuse(fmt.Sprintf("the placement %s already exists with another spec", o.Key), "its users would get other clusters",
			ReplaceSpec.With())
	}
	after := live.DeepCopy()
	wanted, err := typed.ToUnstructured(p)
	if err != nil {
		return fleet.Change{}, fmt.Errorf("encoding %s: %w", o.Key, err)
	}
	after.Object["spec"] = wanted.Object["spec"]
	// Only the server can compute the diff, because it fills in defaults.
	if !o.Reads() || o.Diff || o.DryRun == fleet.DryRunServer {
		options := metav1.UpdateOptions{FieldManager: fleet.FieldManager}
		if o.Reads() {
			options.DryRun = []string{metav1.DryRunAll}
		}
		if after, err = o.Hub.Client.Resource(fleet.Placements).Namespace(o.Key.Namespace).Update(ctx, after, options); err != nil {
			return fleet.Change{}, err
		}
	}
	return fleet.Change{Object: shownAs(o.Reads(), after), Action: fleet.Configured, Live: write.Clean(live)}, nil
}

// shownAs returns an object as a change shows it: whole in a dry run, else its name.
func shownAs(whole bool, u *unstructured.Unstructured) *unstructured.Unstructured {
	if whole {
		return write.Clean(u)
	}
	return fleet.Reference(u)
}

// checkBound refuses sets that are not bound in the namespace, and warns when none is bound: then the
// placement selects nothing.
func (o *CreateOptions) checkBound(ctx context.Context, warn func(fleet.Note)) error {
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.SetBindings, Namespace: o.Key.Namespace})
	if err != nil {
		return fleet.Explain("listing managedclustersetbindings", o.Hub, err)
	}
	if len(items) == 0 {
		if err := fleet.NeedHub(ctx, o.Hub); err != nil {
			return err
		}
	}
	have := BoundIn(items)[o.Key.Namespace]
	for _, name := range o.Spec.ClusterSets {
		if !slices.Contains(have, name) {
			cause := "namespace " + o.Key.Namespace + " is bound to " + cmp.Or(strings.Join(have, ", "), "no cluster set")
			return &fleet.Error{Message: fmt.Sprintf("the placement cannot select from the cluster set %q", name), Cause: cause,
				Fix: BindSet.On(o.Hub, "set", name, "namespace", o.Key.Namespace)}
		}
	}
	if len(have) == 0 {
		warn(fleet.Note{Text: "namespace " + o.Key.Namespace + " is bound to no cluster set, so the placement selects nothing",
			Fix: BindSet.On(o.Hub, "set", "", "namespace", o.Key.Namespace)})
	}
	return nil
}

// sameSpec compares two specs with the API's defaults filled in.
func sameSpec(a, b *clusterv1beta1.PlacementSpec) bool {
	return equality.Semantic.DeepEqual(withDefaults(a), withDefaults(b))
}

// withDefaults returns a spec with the API's defaults filled in.
func withDefaults(spec *clusterv1beta1.PlacementSpec) *clusterv1beta1.PlacementSpec {
	out := spec.DeepCopy()
	out.PrioritizerPolicy.Mode = cmp.Or(out.PrioritizerPolicy.Mode, clusterv1beta1.PrioritizerPolicyModeAdditive)
	for i := range out.PrioritizerPolicy.Configurations {
		c := &out.PrioritizerPolicy.Configurations[i]
		c.Weight = cmp.Or(c.Weight, new(int32(1)))
		if c.ScoreCoordinate != nil {
			c.ScoreCoordinate.Type = cmp.Or(c.ScoreCoordinate.Type, clusterv1beta1.ScoreCoordinateTypeBuiltIn)
		}
	}
	for i := range out.Tolerations {
		out.Tolerations[i].Operator = cmp.Or(out.Tolerations[i].Operator, clusterv1beta1.TolerationOpEqual)
	}
	for i := range out.SpreadPolicy.SpreadConstraints {
		t := &out.SpreadPolicy.SpreadConstraints[i]
		t.MaxSkew, t.WhenUnsatisfiable = max(t.MaxSkew, 1), cmp.Or(t.WhenUnsatisfiable, clusterv1beta1.ScheduleAnyway)
	}
	out.SortBy = cmp.Or(out.SortBy, clusterv1beta1.SortByClusterName)
	out.ScoreRateLimit = cmp.Or(out.ScoreRateLimit, "1m")
	if size := out.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup; size != nil && size.StrVal == "100%" {
		out.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = nil
	}
	return out
}
