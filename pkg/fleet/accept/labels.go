// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// SelfLabels are the labels that one cluster gave itself.
type SelfLabels struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Labels are sorted by key.
	Labels []request.SelfLabel `json:"labels"`
}

// String returns the labels in one line and marks those that placements or sets select by.
func (s SelfLabels) String() string {
	var out []string
	for _, l := range s.Labels {
		text := l.Key + "=" + l.Value
		if len(l.ReadBy) > 0 {
			text += " (read by " + strings.Join(l.ReadBy, ", ") + ")"
		}
		out = append(out, text)
	}
	return fmt.Sprintf("cluster %s gave itself: %s", s.Cluster, strings.Join(out, "; "))
}

// selfGiven returns the labels that a cluster which is not accepted yet brought along: all of
// them, unless its ManagedCluster was created by someone other than a holder of a join token.
// The label of the default set is the hub's.
func selfGiven(mc *clusterv1.ManagedCluster) map[string]string {
	creator := mc.Annotations[clusterv1.AnnotationCreator]
	if mc.Spec.HubAcceptsClient || (creator != "" && creator != identity.BootstrapUser && !request.BootstrapTokenUser.MatchString(creator)) {
		return nil
	}
	out := maps.Clone(mc.Labels)
	if out[clusterv1.LabelClusterSet] == clusterv1beta2.DefaultClusterSet {
		delete(out, clusterv1.LabelClusterSet)
	}
	return out
}

// readers maps a label key to the placements and sets that select by it.
type readers map[string][]string

func (r readers) add(what string, keys ...string) {
	for _, key := range keys {
		if !slices.Contains(r[key], what) {
			r[key] = append(r[key], what)
		}
	}
}

// readReaders reads all placements and sets. Without the right to list them the result is
// empty.
func readReaders(ctx context.Context, hub *fleet.Cluster) (readers, error) {
	out := readers{}
	sets, err := typed.List[clusterv1beta2.ManagedClusterSet](ctx, hub.Client, fleet.ManagedClusterSets, "", metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, fleet.Explain("listing managedclustersets", hub, err)
	}
	for i := range sets {
		if s := sets[i].Spec.ClusterSelector.LabelSelector; s != nil {
			out.add("clusterset "+sets[i].Name, keysOf(*s)...)
		} else if sets[i].Name != clusterv1beta2.DefaultClusterSet {
			out.add("clusterset "+sets[i].Name, clusterv1.LabelClusterSet+"="+sets[i].Name)
		}
	}
	all, err := typed.List[clusterv1beta1.Placement](ctx, hub.Client, fleet.Placements, "", metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, fleet.Explain("listing placements", hub, err)
	}
	for i := range all {
		out.add("placement "+all[i].Namespace+"/"+all[i].Name, placementKeys(&all[i].Spec)...)
	}
	return out, nil
}

// labelKey matches what may be the key of a label in an expression.
var labelKey = regexp.MustCompile(`["']([A-Za-z0-9][-A-Za-z0-9_./]*)["']|labels\.([A-Za-z_][A-Za-z0-9_]*)`)

// placementKeys are the keys of the labels that a placement selects, groups or
// spreads by.
func placementKeys(spec *clusterv1beta1.PlacementSpec) []string {
	var out []string
	for _, p := range spec.Predicates {
		out = append(out, keysOf(p.RequiredClusterSelector.LabelSelector)...)
		for _, expression := range p.RequiredClusterSelector.CELSelector.CELExpressions {
			for _, m := range labelKey.FindAllStringSubmatch(expression, -1) {
				out = append(out, m[1]+m[2])
			}
		}
	}
	for _, c := range spec.SpreadPolicy.SpreadConstraints {
		if c.TopologyKeyType == clusterv1beta1.TopologyKeyTypeLabel {
			out = append(out, c.TopologyKey)
		}
	}
	for _, g := range spec.DecisionStrategy.GroupStrategy.DecisionGroups {
		out = append(out, keysOf(g.GroupClusterSelector.LabelSelector)...)
	}
	return out
}

func keysOf(s metav1.LabelSelector) []string {
	out := slices.Collect(maps.Keys(s.MatchLabels))
	for _, e := range s.MatchExpressions {
		out = append(out, e.Key)
	}
	return out
}

// selfLabels returns the labels that a cluster gave itself, with their readers.
func (r readers) selfLabels(mc *clusterv1.ManagedCluster) SelfLabels {
	out := SelfLabels{Cluster: mc.Name}
	given := selfGiven(mc)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		by := slices.Concat(r[key], r[key+"="+given[key]])
		slices.Sort(by)
		out.Labels = append(out.Labels, request.SelfLabel{Key: key, Value: given[key], ReadBy: by})
	}
	return out
}

// selfLabels returns the labels that a cluster gave itself, with their readers, which are read
// on first use.
func (o *Options) selfLabels(mc *clusterv1.ManagedCluster) (SelfLabels, error) {
	if len(selfGiven(mc)) == 0 {
		return SelfLabels{}, nil
	}
	r, err := o.readers()
	return r.selfLabels(mc), err
}

// describe adds to pending requests which agent holds the name and what labels the cluster
// gave itself.
func (o *Options) describe(ctx context.Context, requests []request.Request, now time.Time) error {
	o.readers = sync.OnceValues(func() (readers, error) { return readReaders(ctx, o.Hub) })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(acceptParallel)
	for i := range requests {
		if q := &requests[i]; q.State == request.StatePending {
			group.Go(func() error { return o.describeOne(ctx, q, now) })
		}
	}
	return group.Wait()
}

func (o *Options) describeOne(ctx context.Context, q *request.Request, now time.Time) error {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, o.Hub.Client, fleet.ManagedClusters, "", q.Cluster)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fleet.Explain("reading managedcluster "+q.Cluster, o.Hub, err)
	}
	held, err := o.readHolder(ctx, mc)
	if err != nil {
		return err
	}
	if held.isRival(*q) {
		q.Holder, q.Reason = held.agent, held.describeRivals(*q, now)
	}
	given, err := o.selfLabels(mc)
	q.Labels = given.Labels
	return err
}
