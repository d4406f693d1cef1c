// SPDX-License-Identifier: Apache-2.0

package fleet

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

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// PlacementCreate says which placement to make.
type PlacementCreate struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Key is namespace and name.
	Key types.NamespacedName
	// Words are its spec.
	Words PlacementWords
	// Overwrite replaces the spec of one that is there.
	Overwrite bool
}

// Placement is the object that the options describe, judged as the hub's
// admission judges it. warn is told what is without effect in it.
func (o *PlacementCreate) Placement(warn func(string)) (*clusterv1beta1.Placement, error) {
	spec, err := o.Words.Spec()
	if err != nil {
		return nil, err
	}
	p := &clusterv1beta1.Placement{Spec: spec}
	p.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("Placement"))
	p.Namespace, p.Name = o.Key.Namespace, o.Key.Name
	return p, checkPlacement(p, warn)
}

// checkPlacement refuses a placement that cannot be followed, with its first
// problem. warn may be nil.
func checkPlacement(p *clusterv1beta1.Placement, warn func(string)) error {
	for _, problem := range schedule.Validate(p) {
		switch {
		case problem.Severity == schedule.SeverityError:
			return usage(fmt.Sprintf("the placement cannot be followed: %s: %s", problem.Field, oneLine(problem.Message)), "", problem.Fix)
		case warn != nil:
			warn(problem.Text())
		}
	}
	return nil
}

// CreatePlacement makes a placement. One that is there with the same spec is
// unchanged; another spec is refused without Overwrite. The sets that it names
// must be bound in its namespace. warn is told what a person may not have meant.
func CreatePlacement(ctx context.Context, o PlacementCreate, warn func(string)) (PlacementResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	p, err := o.Placement(warn)
	if err != nil {
		return PlacementResult{}, err
	}
	if err := o.bound(ctx, warn); err != nil {
		return PlacementResult{}, err
	}
	u, err := typed.ToUnstructured(p)
	if err != nil {
		return PlacementResult{}, fmt.Errorf("encoding %s: %w", o.Key, err)
	}
	var change Change
	err = again(func() error {
		live, err := r.live(ctx, o.Hub, u)
		switch {
		case err != nil:
			return explain("reading "+describe(u), o.Hub, err)
		case live == nil:
			change, err = r.create(ctx, o.Hub, u)
		default:
			change, err = o.replace(ctx, p, live)
		}
		return err
	})
	err = busy(u, err)
	if apierrors.IsNotFound(err) && !isNoKind(err) {
		err = &Error{Message: fmt.Sprintf("there is no namespace %q on %s", o.Key.Namespace, o.Hub), Fix: "kubectl create namespace " + ShellWord(o.Key.Namespace) + o.Hub.flag(), Err: err}
	}
	if err != nil {
		return PlacementResult{}, explain("applying "+describe(u), o.Hub, err)
	}
	return PlacementResult{Items: []Change{change}}, nil
}

// create applies an object that must not be there yet.
func (r *run) create(ctx context.Context, c *Cluster, u *unstructured.Unstructured) (Change, error) {
	if !r.common.reads() {
		u = u.DeepCopy()
		u.SetResourceVersion(notThere)
	}
	return r.applyOne(ctx, c, u)
}

// replace gives the placement that is there another spec. Every field counts, so
// that nothing of the former one stays behind, whoever wrote it.
func (o *PlacementCreate) replace(ctx context.Context, p *clusterv1beta1.Placement, live *unstructured.Unstructured) (Change, error) {
	old, err := typed.FromUnstructured[clusterv1beta1.Placement](live)
	if err != nil {
		return Change{}, err
	}
	switch {
	case live.GetDeletionTimestamp() != nil:
		return Change{}, beingDeleted(live)
	case sameSpec(&old.Spec, &p.Spec):
		return Change{Object: shownAs(o.reads(), live), Action: Unchanged, Live: clean(live)}, nil
	case !o.Overwrite && !o.Diff:
		return Change{}, refused(fmt.Sprintf("the placement %s is there with another spec", o.Key), "its users would get other clusters",
			"add --overwrite, after looking at the difference by --diff; or choose another name")
	}
	after := live.DeepCopy()
	wanted, err := typed.ToUnstructured(p)
	if err != nil {
		return Change{}, fmt.Errorf("encoding %s: %w", o.Key, err)
	}
	after.Object["spec"] = wanted.Object["spec"]
	// A difference to what is there is only told by the server, which fills in defaults.
	if !o.reads() || o.Diff || o.DryRun == DryRunServer {
		options := metav1.UpdateOptions{FieldManager: FieldManager}
		if o.reads() {
			options.DryRun = []string{metav1.DryRunAll}
		}
		if after, err = o.Hub.Client.Resource(placements).Namespace(o.Key.Namespace).Update(ctx, after, options); err != nil {
			return Change{}, err
		}
	}
	return Change{Object: shownAs(o.reads(), after), Action: Configured, Live: clean(live)}, nil
}

// shownAs is an object as a change shows it: whole in a dry run, else its name.
func shownAs(whole bool, u *unstructured.Unstructured) *unstructured.Unstructured {
	if whole {
		return clean(u)
	}
	return reference(u)
}

// bound refuses sets that the namespace is not bound to, and warns where it is
// bound to none: such a placement selects nothing.
func (o *PlacementCreate) bound(ctx context.Context, warn func(string)) error {
	items, err := listAll(ctx, o.Hub, query{resource: setBindings, namespace: o.Key.Namespace})
	if err != nil {
		return explain("listing managedclustersetbindings", o.Hub, err)
	}
	if len(items) == 0 {
		if err := needHub(ctx, o.Hub); err != nil {
			return err
		}
	}
	have := boundIn(items)[o.Key.Namespace]
	for _, name := range o.Words.Sets {
		if !slices.Contains(have, name) {
			cause := "namespace " + o.Key.Namespace + " is bound to " + cmp.Or(strings.Join(have, ", "), "no cluster set")
			return &Error{Message: fmt.Sprintf("the placement cannot select from the cluster set %q", name), Cause: cause, Fix: bindLine(name, o.Key.Namespace, o.Hub)}
		}
	}
	if len(have) == 0 {
		warn("namespace " + o.Key.Namespace + " is bound to no cluster set, so that the placement selects nothing: " + bindLine("<set>", o.Key.Namespace, o.Hub))
	}
	return nil
}

// bindLine is what to type to bind a set.
func bindLine(set, namespace string, hub *Cluster) string {
	return "kubectl ocm clusterset bind " + set + " -n " + namespace + hub.flag()
}

// sameSpec compares two specs as the hub reads them, with its defaults.
func sameSpec(a, b *clusterv1beta1.PlacementSpec) bool {
	return equality.Semantic.DeepEqual(defaulted(a), defaulted(b))
}

// defaulted is a spec with the defaults of the API filled in (placement.md 1).
func defaulted(spec *clusterv1beta1.PlacementSpec) *clusterv1beta1.PlacementSpec {
	out := spec.DeepCopy()
	out.PrioritizerPolicy.Mode = cmp.Or(out.PrioritizerPolicy.Mode, clusterv1beta1.PrioritizerPolicyModeAdditive)
	for i := range out.PrioritizerPolicy.Configurations {
		c := &out.PrioritizerPolicy.Configurations[i]
		if c.Weight == nil {
			one := int32(1)
			c.Weight = &one
		}
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
