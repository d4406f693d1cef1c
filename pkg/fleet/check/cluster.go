// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// clusters checks every cluster of the hub, or the named ones. The healthy ones share one
// line, however many there are.
func (c *checking) clusters(ctx context.Context) []Area {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	wanted, err := c.wantedClusters(ctx)
	if err != nil {
		return []Area{{"clusters", []Finding{unreadable(CodeSpokeKlusterlet, err)}}}
	}
	all, err := c.readFleet(ctx)
	if err != nil {
		return []Area{{"clusters", []Finding{unreadable(CodeHubReached, err)}}}
	}
	var out []Area
	missing := slices.Clone(wanted)
	available := 0
	versions := map[string]int{}
	for i := range all.Clusters {
		mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](&all.Clusters[i])
		if err != nil || (len(wanted) > 0 && !slices.Contains(wanted, mc.Name)) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == mc.Name })
		info := all.Info(mc)
		found := append(c.cluster(ctx, info, mc, all), c.asksAgain(mc, all.Requests[mc.Name])...)
		if info.Status == cluster.Available {
			available++
			versions[fleet.OrElse(info.AgentVersion, "unknown")]++
		}
		switch {
		case len(found) > 0:
			out = append(out, Area{"cluster " + mc.Name, found})
		case len(wanted) > 0:
			out = append(out, Area{"cluster " + mc.Name, good(CodeClusterUnwell, "available")})
		}
	}
	for _, name := range missing {
		none := failure(CodeClusterJoining, fmt.Sprintf("there is no managed cluster %q", name), "", naming.ListClusters.On(c.o.Hub))
		out = append(out, Area{"cluster " + name, []Finding{none}})
	}
	slices.SortFunc(out, func(a, b Area) int { return strings.Compare(a.Name, b.Name) })
	if len(wanted) > 0 {
		return out
	}
	out, lines := c.foldByCode(out)
	if available > 0 {
		lines = append(good(CodeClusterUnwell, "%d of %d available, agents %s", available, len(all.Clusters), countedText(versions)), lines...)
	}
	if len(lines) > 0 {
		out = slices.Insert(out, 0, Area{"clusters", lines})
	}
	return out
}

// countedText lists how many there are of each: "v0.1.0 (3), unknown (1)".
func countedText(counts map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	return strings.Join(out, ", ")
}

// maxOfCode bounds the clusters reported one by one with the same code, or the same title of a
// work, and maxWorksTold the works with the same code.
const maxOfCode, maxWorksTold = 10, 50

// foldByCode keeps the first clusters of each code and folds the others into one line per code:
// what is wrong with a thousand clusters is one problem.
func (c *checking) foldByCode(areas []Area) ([]Area, []Finding) {
	seen, same, folded, more := map[string]int{}, map[[2]string]int{}, map[string]int{}, map[string]*Finding{}
	var out []Area
	for _, area := range areas {
		var kept []Finding
		for _, f := range area.Findings {
			kind := [2]string{f.Code, f.Title}
			if seen[f.Code] < toldOf(f.Code) && same[kind] < maxOfCode {
				seen[f.Code]++
				same[kind]++
				kept = append(kept, f)
				continue
			}
			folded[f.Code]++
			switch {
			case more[f.Code] == nil:
				more[f.Code] = &Finding{Code: f.Code, Severity: f.Severity, Cause: f.Title, Fix: c.listOthers(f.Code)}
			case f.Severity == SeverityError:
				more[f.Code].Severity = SeverityError
			}
		}
		if len(kept) > 0 {
			out = append(out, Area{area.Name, kept})
		}
	}
	var lines []Finding
	for _, code := range slices.Sorted(maps.Keys(more)) {
		f := more[code]
		f.Title = "on " + fleet.Many(folded[code], "more cluster")
		if isOfWorks(code) {
			f.Title = "so are " + fleet.Many(folded[code], "more work")
		}
		lines = append(lines, *f)
	}
	return out, lines
}

// isOfWorks reports whether a code is about works: a cluster may have many of them.
func isOfWorks(code string) bool {
	return code == CodeClusterWorks || slices.ContainsFunc(workFaults, func(f workFault) bool { return f.code == code })
}

func toldOf(code string) int {
	if isOfWorks(code) {
		return maxWorksTold
	}
	return maxOfCode
}

// listOthers returns the fix that lists all clusters with a code.
func (c *checking) listOthers(code string) fleet.Fix {
	status := map[string]string{
		CodeClusterWaits: "pendingaccept", CodeClusterRequest: "pendingcsr", CodeClusterJoining: "joining", CodeClusterLease: "unknown",
		CodeClusterUnwell: "notavailable", CodeClusterDenied: "denied", CodeClusterLeaves: "deleting",
	}[code]
	if isOfWorks(code) {
		return ListAllWorks.On(c.o.Hub)
	}
	return ListByStatus.On(c.o.Hub, "status", status)
}

// wantedClusters returns the names of the clusters to check; empty means all. When the agent of
// another cluster than the hub is checked, it is that cluster.
func (c *checking) wantedClusters(ctx context.Context) ([]string, error) {
	if len(c.o.Clusters) > 0 || c.o.Spoke == nil || c.o.Spoke == c.o.Hub {
		return c.o.Clusters, nil
	}
	agents, err := typed.List[operatorv1.Klusterlet](ctx, c.o.Spoke.Client, fleet.Klusterlets, "", metav1.ListOptions{})
	if err != nil {
		return nil, fleet.Explain("listing klusterlets", c.o.Spoke, err)
	}
	var out []string
	for i := range agents {
		a := &agentCheck{checking: c, k: &agents[i]}
		a.readIdentity(ctx)
		out = append(out, fleet.OrElse(a.cluster, a.k.Spec.ClusterName))
	}
	return out, nil
}

// fleetState is a fleet and everything needed to check its clusters.
type fleetState struct {
	*cluster.State
	// places are the namespaces of clusters, sets the names of cluster sets.
	places, sets map[string]bool
	// hub is the version of the hub; "" when it is not ours or unknown.
	hub   string
	going work.Departures
}

// readFleet reads everything needed to check the clusters: eight list requests at most.
func (c *checking) readFleet(ctx context.Context) (*fleetState, error) {
	out := &fleetState{places: map[string]bool{}, sets: map[string]bool{}, going: work.Departures{Hub: c.o.Hub}}
	var places, sets []unstructured.Unstructured
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		out.State, err = (&cluster.ListOptions{Hub: c.o.Hub, Requests: true}).Gather(ctx)
		return err
	})
	group.Go(func() error {
		return fleet.ListTogether(ctx, c.o.Hub,
			fleet.Into(&places, fleet.Query{Resource: fleet.Namespaces, Labels: clusterv1.LabelClusterName}),
			fleet.Into(&sets, fleet.Query{Resource: fleet.ManagedClusterSets}))
	})
	group.Go(func() error {
		// Missing rights to read it are reported by the check of the hub.
		if d, err := hub.Deployment(ctx, c.o.Hub); err == nil && d != nil && !hub.OthersHub(d) {
			out.hub = hub.TagOf(hub.ImageOf(d))
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	cluster.AddNames(out.places, places)
	cluster.AddNames(out.sets, sets)
	out.Now = c.o.Hub.Now(c.run.Now())
	return out, nil
}

// cluster checks one cluster; no findings mean that all is well.
func (c *checking) cluster(ctx context.Context, info cluster.Info, mc *clusterv1.ManagedCluster, all *fleetState) []Finding {
	out := c.state(info, mc, all)
	if info.Clock == "skewed" {
		out = append(out, warning(CodeClusterClock, "its clock differs from the hub's",
			cluster.ConditionText(mc.Status.Conditions, clusterv1.ConditionClockSynced), fleet.Advice("set the cluster's clock")))
	}
	if d := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDuplicateClusterName); d != nil && d.Status == metav1.ConditionTrue {
		fix := AcceptAnew.On(c.o.Hub, "cluster", info.Name)
		out = append(out, failure(CodeClusterName, "another agent asks under its name", fleet.OneLine(d.Message), fix))
	}
	if mc.Spec.HubAcceptsClient && mc.DeletionTimestamp == nil && !all.places[info.Name] {
		out = append(out, failure(CodeClusterRights, "its namespace on the hub is missing or not its own",
			cluster.ConditionText(mc.Status.Conditions, clusterv1.ConditionHubAccepted), fleet.CheckHub.On(c.o.Hub)))
	}
	if info.Set != "" && mc.DeletionTimestamp == nil && !all.sets[info.Set] {
		out = append(out, warning(CodeClusterSet, "it is in the cluster set "+info.Set+", which does not exist",
			"its label "+clusterv1.LabelClusterSet+" names it", placement.CreateSet.On(c.o.Hub, "set", info.Set)))
	}
	if !hub.Fits(all.hub, info.AgentVersion) {
		out = append(out, failure(CodeClusterVersion, "its agent is "+info.AgentVersion+", which the hub, "+all.hub+", does not work with", hub.FittingText,
			hub.UpgradeAgent.With("cluster", info.Name, "context", c.contextOf(mc))))
	}
	out = append(out, c.tunnel(info, mc)...)
	return append(out, c.works(ctx, info, mc, all)...)
}

// state returns the finding for a cluster that is not in the desired state.
func (c *checking) state(info cluster.Info, mc *clusterv1.ManagedCluster, all *fleetState) []Finding {
	accept := fleet.AcceptCluster.On(c.o.Hub, "cluster", info.Name)
	wait := fleet.AcceptAndWait.On(c.o.Hub, "cluster", info.Name)
	onSpoke := CheckSpoke.With("context", c.contextOf(mc), "hub", c.o.Hub.Context)
	f := Finding{Severity: SeverityWarning, Cause: info.Message}
	switch info.Status {
	case cluster.PendingAccept:
		f.Code, f.Title, f.Fix = CodeClusterWaits, "it asks to join and waits for an answer", accept
	case cluster.PendingCSR:
		f.Code, f.Title, f.Fix = CodeClusterRequest, "it waits for its certificate", accept
		if cluster.RequestDenied(mc) != "" {
			f.Fix = wait
		}
	case cluster.Joining:
		f.Code, f.Title, f.Fix = CodeClusterJoining, "accepted, but its agent has not reported", onSpoke
	case cluster.Unknown:
		f.Code, f.Severity, f.Title, f.Fix = CodeClusterLease, SeverityError, c.describeLease(info, mc), onSpoke
		if !apimeta.IsStatusConditionPresentAndEqual(mc.Status.Conditions, clusterv1.ConditionAvailable, metav1.ConditionUnknown) {
			// The hub has to notice it before anything is known of the agent.
			f.Title, f.Cause, f.Fix = "the hub does not monitor it", all.Silent(mc), fleet.CheckHub.On(c.o.Hub)
		}
	case cluster.NotAvailable:
		f.Code, f.Severity, f.Title, f.Fix = CodeClusterUnwell, SeverityError, "its API server is not healthy", onSpoke
	case cluster.Denied:
		// The agent may have to ask once more before there is a request to approve.
		f.Code, f.Title, f.Fix = CodeClusterDenied, deniedTitle(info), wait
	case cluster.Deleting:
		f.Code, f.Title = CodeClusterLeaves, "it is being deleted for "+duration.HumanDuration(c.run.Now().Sub(mc.DeletionTimestamp.Time))
		f.Cause, f.Fix = fleet.OrElse(info.Message, "finalizers: "+strings.Join(mc.Finalizers, ", ")), RemoveGone.On(c.o.Hub, "cluster", info.Name)
	default:
		return nil
	}
	return []Finding{f}
}

// asksAgain returns the finding for an agent that has lost its certificate: it asks for
// another one under its former name, and its cluster may look healthy meanwhile.
func (c *checking) asksAgain(mc *clusterv1.ManagedCluster, requests []unstructured.Unstructured) []Finding {
	holder := mc.Annotations[clusterv1.AnnotationAgentName]
	if holder == "" || !mc.Spec.HubAcceptsClient || !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) {
		return nil
	}
	for i := range requests {
		q := request.Parse(&requests[i], nil, nil)
		if q.State == request.StatePending && q.Identity != "renewal" && q.Requester == clusterv1.UserPrefix+mc.Name+":"+holder {
			return []Finding{warning(CodeClusterRequest, "its agent asks for a new certificate and waits for an answer",
				"certificatesigningrequest/"+q.Name+" of agent "+holder+" waits for approval", fleet.AcceptCluster.On(c.o.Hub, "cluster", mc.Name))}
		}
	}
	return nil
}

// deniedTitle says what the agent of a denied cluster can still do.
func deniedTitle(info cluster.Info) string {
	if info.Works.Total == 0 {
		return "it is denied: its agent has no rights"
	}
	return fmt.Sprintf("it is denied: its agent may only read and finish the works that it has (%d), until they are deleted", info.Works.Total)
}

// contextOf returns the context with which the caller reaches a cluster; "" when unknown.
func (c *checking) contextOf(mc *clusterv1.ManagedCluster) string {
	for _, client := range mc.Spec.ManagedClusterClientConfigs {
		if name := c.contextAt(client.URL); name != "" {
			return name
		}
	}
	return ""
}

// contextAt returns the context of an API server.
func (c *checking) contextAt(server string) string {
	if c.o.ContextOf == nil || server == "" {
		return ""
	}
	return c.o.ContextOf(server)
}

// describeLease says how long ago a cluster last reported, and what the limit is.
func (c *checking) describeLease(info cluster.Info, mc *clusterv1.ManagedCluster) string {
	if info.LastSeen == nil {
		return "its lease was never renewed"
	}
	return fmt.Sprintf("lease not renewed for %s (limit %ds)", duration.HumanDuration(c.run.Now().Sub(info.LastSeen.Time)),
		int64(cluster.LeaseLimit(mc).Seconds()))
}
