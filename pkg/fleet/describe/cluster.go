// SPDX-License-Identifier: Apache-2.0

package describe

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
)

// Options say which cluster to describe.
type Options struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Name of the cluster.
	Name string
}

// Cluster is everything known of one managed cluster.
type Cluster struct {
	cluster.Info
	Conditions []Condition `json:"conditions"`
	// Sets are the sets that it is a member of.
	Sets []Set `json:"sets"`
	// Placements are those that select it, NAMESPACE/NAME.
	Placements []string `json:"placements"`
	// AddOnStates and WorkStates are its add-ons and works.
	AddOnStates []addon.State `json:"addonStates"`
	WorkStates  []work.Info   `json:"workStates"`
	// Events are the last ones, the newest first.
	Events []Event `json:"events"`
}

// Condition is one condition of a cluster.
type Condition struct {
	Type   string      `json:"type"`
	Status string      `json:"status"`
	Since  metav1.Time `json:"since"`
	Reason string      `json:"reason"`
	// Message is in one line.
	Message string `json:"message,omitempty"`
	// Good reports whether the status is what a healthy cluster has.
	Good bool `json:"good"`
}

// Set is a cluster set, and who may use it.
type Set struct {
	Name string `json:"name"`
	// Bound are the namespaces that are bound to it.
	Bound []string `json:"boundNamespaces,omitempty"`
}

// Event is one event about a cluster or an object in its namespace.
type Event struct {
	At      metav1.Time `json:"at"`
	Type    string      `json:"type"`
	Object  string      `json:"object"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
}

// Read reads everything of one cluster. The parts are read in parallel, with about a dozen
// requests.
func Read(ctx context.Context, o Options) (Cluster, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	found, err := cluster.List(ctx, cluster.ListOptions{Common: o.Common, Hub: o.Hub, Name: o.Name})
	if err != nil {
		return Cluster{}, err
	}
	if len(found) == 0 {
		return Cluster{}, naming.NoCluster(o.Name, o.Hub)
	}
	out := Cluster{Info: found[0], Conditions: []Condition{}, Sets: []Set{}, Placements: []string{}, WorkStates: []work.Info{}, Events: []Event{}}
	group, ctx := errgroup.WithContext(ctx)
	for _, read := range []func(context.Context, *Options) error{
		out.readConditions, out.readSets, out.readPlacements, out.readAddOns, out.readWorks, out.readEvents,
	} {
		group.Go(func() error { return read(ctx, &o) })
	}
	return out, group.Wait()
}

// badWhenTrue are the conditions that a healthy cluster does not have.
var badWhenTrue = []string{clusterv1.ConditionDeleting, clusterv1.ConditionDuplicateClusterName, clusterv1.ConditionCertificateRequestDenied}

func (c *Cluster) readConditions(ctx context.Context, o *Options) error {
	u, err := o.Hub.Client.Resource(fleet.ManagedClusters).Get(ctx, o.Name, fleet.GetOptions)
	if err != nil {
		return fleet.Explain("reading managedcluster "+o.Name, o.Hub, err)
	}
	for _, is := range fleet.ConditionsOf(u) {
		c.Conditions = append(c.Conditions, Condition{Type: is.Type, Status: string(is.Status), Since: is.LastTransitionTime, Reason: is.Reason,
			Message: fleet.OneLine(is.Message), Good: (is.Status == metav1.ConditionTrue) != slices.Contains(badWhenTrue, is.Type)})
	}
	return nil
}

func (c *Cluster) readSets(ctx context.Context, o *Options) error {
	sets, err := clusterset.List(ctx, clusterset.ListOptions{Hub: o.Hub})
	for _, s := range sets {
		if slices.Contains(s.Members, o.Name) {
			c.Sets = append(c.Sets, Set{Name: s.Name, Bound: s.Bound})
		}
	}
	return err
}

func (c *Cluster) readPlacements(ctx context.Context, o *Options) error {
	placements, err := placement.List(ctx, placement.ListOptions{Hub: o.Hub})
	for _, p := range placements {
		if slices.Contains(p.Clusters, o.Name) {
			c.Placements = append(c.Placements, p.Namespace+"/"+p.Name)
		}
	}
	return err
}

func (c *Cluster) readAddOns(ctx context.Context, o *Options) (err error) {
	c.AddOnStates, err = addon.On(ctx, o.Hub, o.Name)
	return err
}

func (c *Cluster) readWorks(ctx context.Context, o *Options) error {
	works, err := work.List(ctx, work.ListOptions{Hub: o.Hub, Targets: cluster.Targets{Clusters: []string{o.Name}}})
	c.WorkStates = append(c.WorkStates, works...)
	return err
}

// maxEvents bounds how many events are shown.
const maxEvents = 10

// readEvents reads the events of the cluster's namespace, and those about the cluster itself,
// which are in the namespace default. A user who may not read events still sees the rest.
func (c *Cluster) readEvents(ctx context.Context, o *Options) error {
	var found []unstructured.Unstructured
	for _, q := range []fleet.Query{
		{Resource: fleet.Events, Namespace: o.Name},
		{Resource: fleet.Events, Namespace: metav1.NamespaceDefault, Fields: "involvedObject.kind=ManagedCluster,involvedObject.name=" + o.Name},
	} {
		items, err := fleet.ListAll(ctx, o.Hub, q)
		if err != nil {
			return nil //nolint:nilerr // events only help; the rest is worth showing without them
		}
		found = append(found, items...)
	}
	for i := range found {
		c.Events = append(c.Events, eventOf(&found[i]))
	}
	slices.SortStableFunc(c.Events, func(a, b Event) int { return b.At.Compare(a.At.Time) })
	c.Events = c.Events[:min(len(c.Events), maxEvents)]
	return nil
}

func eventOf(u *unstructured.Unstructured) Event {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(u.Object, fields...)
		return value
	}
	e := Event{Type: text("type"), Reason: text("reason"), Message: fleet.OneLine(text("message")), At: u.GetCreationTimestamp(),
		Object: fmt.Sprintf("%s/%s", text("involvedObject", "kind"), text("involvedObject", "name"))}
	for _, at := range []string{text("lastTimestamp"), text("series", "lastObservedTime"), text("eventTime")} {
		var last metav1.Time
		if at != "" && last.UnmarshalQueryParameter(at) == nil && last.After(e.At.Time) {
			e.At = last
		}
	}
	return e
}
