// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// HealthOptions say which clusters to ask.
type HealthOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Targets are the clusters; empty means all that are accepted.
	Targets cluster.Targets
	// Patience is how long each cluster may take to answer; 0 means 10 seconds.
	Patience time.Duration
}

// The states of an API server.
const (
	// Healthy: it answered that it is ready.
	Healthy = "ok"
	// Unhealthy: it answered that it is not.
	Unhealthy = "failing"
	// Unreachable: there was no answer of it.
	Unreachable = "unreachable"
)

// Health is how a cluster is reached through its hub.
type Health struct {
	Cluster string `json:"cluster"`
	// AddOn is on when the agent of the cluster has ever opened a tunnel, off if not, and empty while the hub has not
	// looked.
	AddOn string `json:"addon,omitempty"`
	// Tunnel is one of the states of package cluster, and empty while the hub has not looked.
	Tunnel string `json:"tunnel,omitempty"`
	// APIServer is Healthy, Unhealthy or Unreachable.
	APIServer string `json:"apiServer"`
	// Latency is the median of the answers' times in milliseconds, over a connection that is open; 0 without an
	// answer.
	Latency float64 `json:"latencyP50Milliseconds,omitempty"`
	// Message is why it is not healthy.
	Message string `json:"message,omitempty"`
}

// Well reports whether the API server of the cluster answers and is ready.
func (h *Health) Well() bool { return h.APIServer == Healthy }

// The bounds of a run: clusters that are asked at the same time, and questions to each.
const (
	healthParallel  = 32
	healthQuestions = 5
	healthPatience  = 10 * time.Second
)

// CheckHealth asks the API servers of managed clusters through their hub whether they are ready, several at a time, and
// returns the answers by name. A cluster that does not answer is no error. Nobody needs more rights than to use the path.
func CheckHealth(ctx context.Context, o HealthOptions) ([]Health, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if err := Served(ctx, o.Hub); err != nil {
		return nil, err
	}
	out, err := o.asked(ctx)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(o.Hub.Config)
	config.QPS = -1 // the client's own limit would count as latency
	hub, err := fleet.Connect(config, o.Hub.Context)
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.SetLimit(healthParallel)
	for i := range out {
		group.Go(func() error {
			out[i].ask(ctx, hub, r, o.Patience)
			return nil
		})
	}
	_ = group.Wait()
	return out, ctx.Err()
}

// asked returns the clusters to ask, with what the hub knows of their tunnels.
func (o *HealthOptions) asked(ctx context.Context) ([]Health, error) {
	var names []string
	if !o.Targets.Empty() {
		var err error
		if names, err = o.Targets.Resolve(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManagedClusters})
	if err != nil {
		return nil, fleet.Explain("listing managedclusters", o.Hub, err)
	}
	out := []Health{}
	for i := range items {
		u := &items[i]
		accepted, _, _ := unstructured.NestedBool(u.Object, "spec", "hubAcceptsClient")
		if names == nil && !accepted || names != nil && !slices.Contains(names, u.GetName()) {
			continue
		}
		h := Health{Cluster: u.GetName(), Tunnel: cluster.TunnelOf(fleet.ConditionsOf(u))}
		h.AddOn = map[string]string{cluster.Connected: "on", cluster.Lost: "on", cluster.Never: "off"}[h.Tunnel]
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b Health) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out, nil
}

// ask asks one cluster: the first question opens what the others use, and is not measured.
func (h *Health) ask(ctx context.Context, hub *fleet.Cluster, r *fleet.Run, patience time.Duration) {
	if patience <= 0 {
		patience = healthPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var took []time.Duration
	for i := range healthQuestions + 1 {
		from := r.Now()
		if err := get(ctx, hub, Way{Cluster: h.Cluster}, "/readyz"); err != nil {
			h.judge(ctx, hub, err)
			return
		}
		if i > 0 {
			took = append(took, r.Now().Sub(from))
		}
	}
	slices.Sort(took)
	h.APIServer, h.Latency = Healthy, float64(took[len(took)/2].Microseconds())/1000
}

// judge tells an API server that is not ready from one that was not reached.
func (h *Health) judge(ctx context.Context, hub *fleet.Cluster, err error) {
	h.APIServer, h.Message = Unreachable, describe(explain(ctx, hub, Way{Cluster: h.Cluster}, err))
	var status apierrors.APIStatus
	if errors.As(err, &status) && causeOf(status) == "" && status.Status().Code == http.StatusInternalServerError {
		h.APIServer = Unhealthy // this is how an API server says that it is not ready
	}
}
