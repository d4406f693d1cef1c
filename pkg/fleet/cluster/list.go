// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// ListOptions say which clusters to list.
type ListOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Name keeps one cluster; empty keeps all.
	Name string
	// Selector is a label selector.
	Selector string
	// Set keeps the members of a cluster set.
	Set string
	// Status keeps clusters in one state, in upper or lower case: available, unknown, or
	// pending for all that have not joined yet.
	Status string

	// Requests reads certificate requests even when every cluster has joined.
	Requests bool
}

// Info is the summary of one managed cluster.
type Info struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	// Message is why it is not available.
	Message string `json:"message,omitempty"`
	// Set is its exclusive cluster set.
	Set string `json:"set,omitempty"`
	// Version is that of Kubernetes.
	Version string `json:"version,omitempty"`
	CPU     Amount `json:"cpu"`
	Memory  Amount `json:"memory"`
	AddOns  Count  `json:"addons"`
	Works   Count  `json:"works"`
	// LastSeen is when its agent last renewed the lease; nil when it never did.
	LastSeen *metav1.Time      `json:"lastSeen,omitempty"`
	Created  metav1.Time       `json:"created"`
	URLs     []string          `json:"urls,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Claims   map[string]string `json:"claims,omitempty"`
	Taints   []string          `json:"taints,omitempty"`
	// Clock is synced, skewed or empty.
	Clock string `json:"clock,omitempty"`
	// AgentVersion is the version that the agent reports with each renewal.
	AgentVersion string `json:"agentVersion,omitempty"`
	// Tunnel is whether its API server is reached through the hub: connected, lost, never, or
	// empty while the hub leads to no clusters.
	Tunnel string `json:"tunnel,omitempty"`
}

// List lists managed clusters by name. It sends four list requests, and a fifth when a cluster
// waits for its certificate, however many clusters there are.
func List(ctx context.Context, o ListOptions) ([]Info, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	in, err := o.Gather(ctx)
	if err != nil {
		return nil, err
	}
	in.Now = o.Hub.Now(r.Now())
	var out []Info
	for i := range in.Clusters {
		mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](&in.Clusters[i])
		if err != nil {
			return nil, err
		}
		info := in.Info(mc)
		if o.matchesStatus(&info) {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// matchesStatus reports whether a cluster passes the filter on states.
func (o *ListOptions) matchesStatus(c *Info) bool {
	switch strings.ToLower(o.Status) {
	case "":
		return true
	case "pending":
		return c.Status == PendingAccept || c.Status == PendingCSR || c.Status == Joining
	}
	return strings.EqualFold(c.Status, o.Status)
}

// Count is how many out of a number of things are well.
type Count struct {
	Good  int `json:"good"`
	Total int `json:"total"`
}

// Amount is how much of a resource clusters have.
type Amount struct {
	Allocatable string `json:"allocatable,omitempty"`
	Capacity    string `json:"capacity,omitempty"`
}

// Add counts one more thing.
func (c *Count) Add(good bool) {
	c.Total++
	if good {
		c.Good++
	}
}

func amount(mc *clusterv1.ManagedCluster, name clusterv1.ResourceName, text func(resource.Quantity) string) Amount {
	var a Amount
	if q, ok := mc.Status.Allocatable[name]; ok {
		a.Allocatable = text(q)
	}
	if q, ok := mc.Status.Capacity[name]; ok {
		a.Capacity = text(q)
	}
	return a
}

// gibibytes formats memory in whole Gi or tenths.
func gibibytes(q resource.Quantity) string {
	gi := float64(q.Value()) / (1 << 30)
	if gi >= 10 || gi == float64(int64(gi)) {
		return fmt.Sprintf("%.0fGi", gi)
	}
	return fmt.Sprintf("%.1fGi", gi)
}
