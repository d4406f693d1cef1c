// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// ListOptions say which placements to list.
type ListOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Namespace keeps placements of one namespace; empty means all.
	Namespace string
	// Names keeps placements of these names, NAME or NAMESPACE/NAME; empty keeps all.
	Names []string
	// Selector is a label selector on the placements.
	Selector string
}

// Info is the summary of one placement.
type Info struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Satisfied is the hub's status: True, False, or empty while there is none.
	Satisfied string `json:"satisfied,omitempty"`
	// Selected is how many clusters its decisions contain, Wanted how many it asks for; nil
	// means all that match.
	Selected int    `json:"selected"`
	Wanted   *int32 `json:"wanted,omitempty"`
	// Sets are the sets it selects from: the bound ones that it names, or all bound ones.
	// Unbound are sets that it names but that are not bound.
	Sets    []string `json:"sets"`
	Unbound []string `json:"unbound,omitempty"`
	// Groups counts its decision groups.
	Groups int `json:"groups"`
	// Reason is why it is not satisfied or cannot be scheduled, Message the description.
	Reason  string            `json:"reason,omitempty"`
	Message string            `json:"message,omitempty"`
	Created metav1.Time       `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Clusters are those in its decisions, sorted.
	Clusters []string `json:"clusters"`
	// Predicates, Prioritizers and Spread describe its spec.
	Predicates   []string `json:"predicates,omitempty"`
	Prioritizers []string `json:"prioritizers,omitempty"`
	Spread       []string `json:"spread,omitempty"`
}

// Called reports whether a name, with or without a namespace, is that of the placement.
func (p Info) Called(name string) bool {
	return name == p.Name || name == p.Namespace+"/"+p.Name
}

// List lists placements by namespace and name, with the clusters of all their decisions. It
// sends three list requests, however many placements there are.
func List(ctx context.Context, o ListOptions) ([]Info, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	var items, decisions, bindings []unstructured.Unstructured
	if err := fleet.ListTogether(ctx, o.Hub,
		fleet.Into(&items, fleet.Query{Resource: fleet.Placements, Namespace: o.Namespace, Labels: o.Selector}),
		fleet.Into(&decisions, fleet.Query{Resource: fleet.PlacementDecisions, Namespace: o.Namespace, Labels: clusterv1beta1.LabelPlacement}),
		fleet.Into(&bindings, fleet.Query{Resource: fleet.SetBindings, Namespace: o.Namespace}),
	); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		if err := fleet.NeedHub(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	selected, bound := decidedBy(decisions), BoundIn(bindings)
	var out []Info
	for i := range items {
		p, err := typed.FromUnstructured[clusterv1beta1.Placement](&items[i])
		if err != nil {
			return nil, err
		}
		info := placementInfo(p, selected[KeyOf(p)], bound[p.Namespace])
		if len(o.Names) == 0 || slices.ContainsFunc(o.Names, info.Called) {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// KeyOf returns the namespace and name of a placement.
func KeyOf(p *clusterv1beta1.Placement) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// decidedBy returns the clusters of decisions by placement, sorted and without duplicates. A
// placement has as many decision objects as its groups need.
func decidedBy(decisions []unstructured.Unstructured) map[types.NamespacedName][]string {
	out := map[types.NamespacedName][]string{}
	for i := range decisions {
		key := types.NamespacedName{Namespace: decisions[i].GetNamespace(), Name: decisions[i].GetLabels()[clusterv1beta1.LabelPlacement]}
		out[key] = append(out[key], cluster.ClustersOf(&decisions[i])...)
	}
	for key, names := range out {
		slices.Sort(names)
		out[key] = slices.Compact(names)
	}
	return out
}

// BoundIn returns the sets that bindings name, by namespace, sorted.
func BoundIn(bindings []unstructured.Unstructured) map[string][]string {
	out := map[string][]string{}
	for i := range bindings {
		out[bindings[i].GetNamespace()] = append(out[bindings[i].GetNamespace()], bindings[i].GetName())
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

func placementInfo(p *clusterv1beta1.Placement, selected, bound []string) Info {
	info := Info{Namespace: p.Namespace, Name: p.Name, Selected: len(selected), Wanted: p.Spec.NumberOfClusters, Sets: []string{}, Clusters: []string{},
		Groups: len(p.Status.DecisionGroups), Created: p.CreationTimestamp, Labels: p.Labels}
	info.Clusters = append(info.Clusters, selected...)
	for _, name := range bound {
		if len(p.Spec.ClusterSets) == 0 || slices.Contains(p.Spec.ClusterSets, name) {
			info.Sets = append(info.Sets, name)
		}
	}
	for _, name := range p.Spec.ClusterSets {
		if !slices.Contains(bound, name) {
			info.Unbound = append(info.Unbound, name)
		}
	}
	if c := apimeta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.ConditionSatisfied); c != nil {
		info.Satisfied = string(c.Status)
		if c.Status != metav1.ConditionTrue {
			info.Reason, info.Message = c.Reason, fleet.OneLine(c.Message)
		}
	}
	if c := apimeta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.ConditionMisconfigured); c != nil && c.Status == metav1.ConditionTrue {
		info.Reason, info.Message = c.Reason, fleet.OneLine(c.Message)
	}
	info.Predicates, info.Prioritizers, info.Spread = PredicateTexts(&p.Spec), prioritizerTexts(&p.Spec), SpreadTexts(&p.Spec)
	return info
}

// PredicateTexts returns one description per predicate of a placement.
func PredicateTexts(spec *clusterv1beta1.PlacementSpec) []string {
	var out []string
	for i := range spec.Predicates {
		s := &spec.Predicates[i].RequiredClusterSelector
		var parts []string
		if text := metav1.FormatLabelSelector(&s.LabelSelector); text != "<none>" {
			parts = append(parts, text)
		}
		if text := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: s.ClaimSelector.MatchExpressions}); text != "<none>" {
			parts = append(parts, "claim "+text)
		}
		for _, expression := range s.CELSelector.CELExpressions {
			parts = append(parts, "cel "+expression)
		}
		if len(parts) == 0 {
			parts = []string{"everything"}
		}
		out = append(out, strings.Join(parts, " and "))
	}
	return out
}

// prioritizerTexts returns the configured prioritizers, as NAME:WEIGHT.
func prioritizerTexts(spec *clusterv1beta1.PlacementSpec) []string {
	var out []string
	if spec.PrioritizerPolicy.Mode == clusterv1beta1.PrioritizerPolicyModeExact {
		out = append(out, "exact")
	}
	for _, c := range spec.PrioritizerPolicy.Configurations {
		name := "?"
		if at := c.ScoreCoordinate; at != nil {
			if name = at.BuiltIn; at.AddOn != nil {
				name = "AddOn:" + at.AddOn.ResourceName + ":" + at.AddOn.ScoreName
			}
		}
		out = append(out, fmt.Sprintf("%s:%d", name, *cmp.Or(c.Weight, new(int32(1)))))
	}
	return out
}

// SpreadTexts returns the spread constraints, as TYPE:KEY:MAXSKEW:WHEN.
func SpreadTexts(spec *clusterv1beta1.PlacementSpec) []string {
	var out []string
	for _, t := range spec.SpreadPolicy.SpreadConstraints {
		out = append(out, fmt.Sprintf("%s:%s:%d:%s", strings.ToLower(string(t.TopologyKeyType)), t.TopologyKey, max(t.MaxSkew, 1),
			cmp.Or(t.WhenUnsatisfiable, clusterv1beta1.ScheduleAnyway)))
	}
	return out
}

// ParseName parses the name of a placement as commands accept it: NAME in the given namespace,
// or NAMESPACE/NAME.
func ParseName(text, namespace string) (types.NamespacedName, error) {
	key := types.NamespacedName{Namespace: namespace, Name: text}
	if in, name, both := strings.Cut(text, "/"); both {
		key = types.NamespacedName{Namespace: in, Name: name}
	}
	if len(validation.IsDNS1123Label(key.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		return key, fleet.Misuse(fmt.Sprintf("%q cannot be the name of a placement", text), "",
			fleet.Advice("name it as NAME or NAMESPACE/NAME, in lower-case letters, digits and '-'"))
	}
	// The name is a label value on its decisions.
	if len(validation.IsValidLabelValue(key.Name)) > 0 {
		return key, fleet.Misuse(fmt.Sprintf("%q cannot be the name of a placement", key.Name), "its decisions carry the name in a label",
			fleet.Advice("use a name of at most 63 characters"))
	}
	return key, nil
}

// Names returns the names of the placements of a namespace, in one request; for an empty
// namespace all, as NAMESPACE/NAME.
func Names(ctx context.Context, hub *fleet.Cluster, namespace string) ([]string, error) {
	items, err := fleet.ListMetadata(ctx, hub, fleet.Query{Resource: fleet.Placements, Namespace: namespace})
	var out []string
	for i := range items {
		name := items[i].GetName()
		if namespace == "" {
			name = items[i].GetNamespace() + "/" + name
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out, err
}

// readPlacement reads a placement; it is an error when it does not exist.
func readPlacement(ctx context.Context, hub *fleet.Cluster, key types.NamespacedName) (*unstructured.Unstructured, error) {
	u, err := hub.Client.Resource(fleet.Placements).Namespace(key.Namespace).Get(ctx, key.Name, fleet.GetOptions)
	switch {
	case apierrors.IsNotFound(err) && fleet.IsNoKind(err):
		return nil, fleet.NotHub(hub, "it does not serve "+fleet.Placements.GroupResource().String())
	case apierrors.IsNotFound(err):
		return nil, naming.NoPlacement(key.String(), hub)
	}
	return u, fleet.Explain("reading placement "+key.String(), hub, err)
}
