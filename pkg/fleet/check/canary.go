// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/canary"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// maxFlights bounds the clusters whose canary is reported one by one although it came back.
const maxFlights = 10

// EndToEnd sends a canary to each available cluster of the hub, or to those of the options, and
// finds those that do not arrive or do not go. It creates and deletes one work on each of them;
// that of an earlier run which was killed it deletes, too.
func EndToEnd(ctx context.Context, o Options) (Report, error) {
	c := &checking{o: &o}
	var cancel context.CancelFunc
	ctx, cancel, c.run = o.Begin(ctx)
	defer cancel()
	names, err := c.wantedClusters(ctx)
	if err != nil {
		return Report{}, err
	}
	missing, err := fleet.MissingRights(ctx, o.Hub, canary.Rights(names...))
	if err != nil {
		return Report{}, fleet.Explain("asking for rights", o.Hub, err)
	}
	if len(missing) > 0 {
		user, _ := token.WhoAmI(ctx, o.Hub)
		none := failure(CodeCanaryAllowed, "you may not send canaries", "it creates and deletes a work on each cluster, and you lack: "+fleet.Listed(missing),
			GrantCanaries.With("user", user, "where", o.Hub.Where()))
		return summary([]Area{{"canaries", []Finding{none}}}, o.Skip), nil
	}
	clusters, err := c.available(ctx, names)
	if err != nil {
		return Report{}, err
	}
	send := canary.Options{Common: o.Common, Hub: o.Hub, Clusters: clusters}
	removed, stuck, err := canary.Sweep(ctx, send, names...)
	if err != nil {
		return Report{}, err
	}
	flights := canary.Send(ctx, send)
	report := summary(c.flights(flights, removed, stuck), o.Skip)
	report.Canaries = flights
	if errors.Is(ctx.Err(), context.Canceled) {
		return report, ctx.Err()
	}
	return report, nil
}

// available returns the clusters that are available, of the named ones or of all.
func (c *checking) available(ctx context.Context, names []string) ([]string, error) {
	all, err := typed.List[clusterv1.ManagedCluster](ctx, c.o.Hub.Client, fleet.ManagedClusters, "", metav1.ListOptions{})
	if err != nil {
		return nil, fleet.Explain("listing managedclusters", c.o.Hub, err)
	}
	var out []string
	for i := range all {
		mc := &all[i]
		if (len(names) == 0 || slices.Contains(names, mc.Name)) && mc.Spec.HubAcceptsClient && mc.DeletionTimestamp == nil &&
			apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionAvailable) {
			out = append(out, mc.Name)
		}
	}
	return out, nil
}

// flights returns what became of canaries: those that failed each in the area of its cluster.
func (c *checking) flights(all, removed, stuck []canary.Flight) []Area {
	var failed []Area
	var told []Finding
	back := 0
	slowest := canary.Flight{}
	for _, f := range append(slices.Clone(all), stuck...) {
		var found []Finding
		if f.Lost != "" {
			found = append(found, failure(CodeCanaryArrives, "a canary did not come back", f.Lost, CheckCluster.On(c.o.Hub, "cluster", f.Cluster)))
		}
		if f.Stuck != "" {
			found = append(found, failure(CodeCanaryGoes, "the canary "+f.Work+" is not gone", f.Stuck,
				DeleteCanary.On(c.o.Hub, "work", f.Work, "cluster", f.Cluster)))
		}
		if found != nil {
			failed = append(failed, Area{"cluster " + f.Cluster, found})
			continue
		}
		if back++; f.Reported+f.Gone > slowest.Reported+slowest.Gone {
			slowest = f
		}
		if len(all) <= maxFlights {
			told = append(told, good(CodeCanaryArrives, "%s: %s", f.Cluster, times(f))...)
		}
	}
	if len(all) > maxFlights && back > 0 {
		told = good(CodeCanaryArrives, "%d of %d came back; the slowest was %s: %s", back, len(all), slowest.Cluster, times(slowest))
	}
	if len(all) == 0 {
		told = []Finding{warning(CodeCanaryArrives, "no canary was sent", "no cluster is available", CheckHubClusters.On(c.o.Hub))}
	}
	if len(removed) > 0 {
		var names []string
		for _, f := range removed {
			names = append(names, f.Cluster+"/"+f.Work)
		}
		told = append(told, good(CodeCanaryGoes, "%s of an earlier run removed: %s", fleet.Many(len(removed), "work"), fleet.Listed(names))...)
	}
	slices.SortFunc(failed, func(a, b Area) int { return strings.Compare(a.Name, b.Name) })
	failed, lines := c.foldByCode(failed)
	return append([]Area{{"canaries", append(told, lines...)}}, failed...)
}

// times says how long a canary was under way.
func times(f canary.Flight) string {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	return "applied in " + seconds(f.Applied) + ", reported in " + seconds(f.Reported) + ", gone in " + seconds(f.Gone)
}

// Add appends what another check found.
func (r *Report) Add(other Report) {
	r.Areas, r.Canaries = append(r.Areas, other.Areas...), append(r.Canaries, other.Canaries...)
	r.OK, r.Warnings, r.Errors = r.OK+other.OK, r.Warnings+other.Warnings, r.Errors+other.Errors
}
