// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"slices"
	"strings"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// The states of all works of one cluster together, the most urgent first.
const (
	// PlaceFailing: at least one work needs somebody.
	PlaceFailing = "Failing"
	// PlaceSilent: the agent does not report, so what is known of the works is old.
	PlaceSilent = "Silent"
	// PlacePending: at least one work is under way, and none fails.
	PlacePending = "Pending"
	// PlaceReady: all works are well.
	PlaceReady = "Ready"
	// PlaceEmpty: there is no work.
	PlaceEmpty = "Empty"
)

// PlaceStates are these states in order.
var PlaceStates = []string{PlaceFailing, PlaceSilent, PlacePending, PlaceReady, PlaceEmpty}

// Place is the summary of the works of one cluster.
type Place struct {
	Cluster string `json:"cluster"`
	// State is one of PlaceStates.
	State string `json:"state"`
	// Works counts those that are ready or complete.
	Works cluster.Count `json:"works"`
	// Progress counts the same works, and those that are not well by what becomes of them.
	Progress cluster.Rollout `json:"progress"`
	// Message is why the cluster is silent, or the first work that is not well.
	Message string `json:"message,omitempty"`
}

// Failing reports whether a work in this state needs somebody.
func Failing(state string) bool {
	return state == ApplyFailed || state == NotAvailable || state == Degraded
}

// Well reports whether a work in this state needs nothing.
func Well(state string) bool { return state == Ready || state == Complete }

// Progress counts works by their states. Those that are well are done, those that need somebody have
// failed, and those of which no agent has reported anything are waiting.
func Progress(works []Info) cluster.Rollout {
	out := cluster.Rollout{Total: len(works)}
	for _, w := range works {
		switch {
		case Well(w.State):
			out.Done++
		case Failing(w.State):
			out.Failed++
		case w.State == Pending:
			out.Waiting++
		default:
			out.Running++
		}
	}
	return out
}

// Everywhere returns a summary for each managed cluster, by name, of the works with o.Names or of
// all. Targets are not used. It sends the list requests of cluster.List.
func Everywhere(ctx context.Context, o ListOptions) ([]Place, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	in, err := (&cluster.ListOptions{Hub: o.Hub}).Gather(ctx)
	if err != nil {
		return nil, err
	}
	in.Now = o.Hub.Now(r.Now())
	out := []Place{}
	for i := range in.Clusters {
		mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](&in.Clusters[i])
		if err != nil {
			return nil, err
		}
		var works []Info
		for j := range in.Works[mc.Name] {
			u := &in.Works[mc.Name][j]
			w, err := typed.FromUnstructured[workv1.ManifestWork](u)
			if err != nil {
				return nil, err
			}
			if len(o.Names) == 0 || slices.Contains(o.Names, w.Name) {
				works = append(works, infoOf(u, w))
			}
		}
		out = append(out, placeOf(in.Info(mc), works))
	}
	slices.SortFunc(out, func(a, b Place) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out, nil
}

// placeOf sums up the works of a cluster.
func placeOf(c cluster.Info, works []Info) Place {
	out := Place{Cluster: c.Name, State: PlaceEmpty, Progress: Progress(works)}
	out.Works = cluster.Count{Good: out.Progress.Done, Total: out.Progress.Total}
	for _, w := range works {
		state := PlacePending
		switch {
		case Failing(w.State):
			state = PlaceFailing
		case Well(w.State):
			state = PlaceReady
		}
		if slices.Index(PlaceStates, state) >= slices.Index(PlaceStates, out.State) {
			continue
		}
		out.State = state
		if out.Message = ""; state != PlaceReady {
			out.Message = strings.TrimSuffix(w.Name+": "+w.State+": "+w.Message, ": ")
		}
	}
	if c.Status == cluster.Unknown {
		out.State, out.Message = PlaceSilent, c.Message
	}
	return out
}
