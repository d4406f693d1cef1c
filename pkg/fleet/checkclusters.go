// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// clusters looks at every cluster of the hub, or at those that were named. The
// healthy ones share one line, however many there are.
func (c *checking) clusters(ctx context.Context) []CheckArea {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	wanted, err := c.wanted(ctx)
	if err != nil {
		return []CheckArea{{Name: "clusters", Findings: []Finding{unreadable(codeSpokeKlusterlet, err)}}}
	}
	state, places, err := c.readFleet(ctx)
	if err != nil {
		return []CheckArea{{Name: "clusters", Findings: []Finding{unreadable(codeHubReached, err)}}}
	}
	var out []CheckArea
	missing := slices.Clone(wanted)
	healthy := 0
	for i := range state.clusters {
		mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](&state.clusters[i])
		if err != nil || (len(wanted) > 0 && !slices.Contains(wanted, mc.Name)) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == mc.Name })
		found := append(c.cluster(state.info(mc), mc, places), c.asksAgain(mc, state.csr[mc.Name])...)
		if len(found) > 0 {
			out = append(out, CheckArea{Name: "cluster " + mc.Name, Findings: found})
			continue
		}
		healthy++
		if len(wanted) > 0 {
			out = append(out, CheckArea{Name: "cluster " + mc.Name, Findings: []Finding{{Code: codeClusterUnwell, Severity: SeverityOK, Title: "available"}}})
		}
	}
	for _, name := range missing {
		out = append(out, CheckArea{Name: "cluster " + name, Findings: []Finding{{Code: codeClusterJoining, Severity: SeverityError,
			Title: fmt.Sprintf("there is no managed cluster %q", name), Fix: "kubectl ocm cluster list" + c.o.Hub.flag()}}})
	}
	slices.SortFunc(out, func(a, b CheckArea) int { return strings.Compare(a.Name, b.Name) })
	if len(wanted) == 0 && healthy > 0 {
		line := Finding{Code: codeClusterUnwell, Severity: SeverityOK, Title: fmt.Sprintf("%d of %d available", healthy, len(state.clusters))}
		out = append([]CheckArea{{Name: "clusters", Findings: []Finding{line}}}, out...)
	}
	return out
}

// wanted names the clusters to look at; none means all. Beside the agent of a
// cluster that is not the hub itself it is that one.
func (c *checking) wanted(ctx context.Context) ([]string, error) {
	if len(c.o.Clusters) > 0 || c.o.Spoke == nil || c.o.Spoke == c.o.Hub {
		return c.o.Clusters, nil
	}
	agents, err := typed.List[operatorv1.Klusterlet](ctx, c.o.Spoke.Client, klusterlets, "", metav1.ListOptions{})
	if err != nil {
		return nil, explain("listing klusterlets", c.o.Spoke, err)
	}
	var out []string
	for i := range agents {
		out = append(out, agents[i].Spec.ClusterName)
	}
	return out, nil
}

// readFleet reads what all clusters are judged by: six lists.
func (c *checking) readFleet(ctx context.Context) (*fleetState, map[string]bool, error) {
	var state *fleetState
	places := map[string]bool{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		state, err = (&ListOptions{Hub: c.o.Hub, requests: true}).read(ctx)
		return err
	})
	group.Go(func() error {
		items, err := listAll(ctx, c.o.Hub, query{resource: namespaces, labels: clusterv1.LabelClusterName})
		addNames(places, items)
		return explain("listing namespaces", c.o.Hub, err)
	})
	return state, places, group.Wait()
}

// cluster judges one cluster; nothing means that all is well.
func (c *checking) cluster(info ClusterInfo, mc *clusterv1.ManagedCluster, places map[string]bool) []Finding {
	out := c.state(info, mc)
	add := func(code string, severity Severity, title, cause, fix string) {
		out = append(out, Finding{Code: code, Severity: severity, Title: title, Cause: cause, Fix: fix})
	}
	hub := c.o.Hub.flag()
	if info.Clock == "skewed" {
		add(codeClusterClock, SeverityWarning, "its clock differs from the hub's", conditionText(mc.Status.Conditions, clusterv1.ConditionClockSynced), "set the cluster's clock")
	}
	if d := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDuplicateClusterName); d != nil && d.Status == metav1.ConditionTrue {
		add(codeClusterName, SeverityError, "another agent asks under its name", oneLine(d.Message), "kubectl ocm accept "+info.Name+" --replace"+hub+"      if it is the same cluster; if not, join that one under a name of its own")
	}
	if mc.Spec.HubAcceptsClient && mc.DeletionTimestamp == nil && !places[info.Name] {
		add(codeClusterRights, SeverityError, "its namespace on the hub is missing or not its own", conditionText(mc.Status.Conditions, clusterv1.ConditionHubAccepted), "kubectl ocm check hub"+hub)
	}
	if bad := info.Works.Total - info.Works.Good; bad > 0 && info.Status == ClusterAvailable {
		add(codeClusterWorks, SeverityWarning, fmt.Sprintf("%d of %d works are not applied and available", bad, info.Works.Total), "", "kubectl ocm work list -c "+info.Name+hub)
	}
	return out
}

// state is a finding for a cluster whose state is not the wanted one.
func (c *checking) state(info ClusterInfo, mc *clusterv1.ManagedCluster) []Finding {
	hub := c.o.Hub.flag()
	accept := "kubectl ocm accept " + info.Name + hub
	onSpoke := "kubectl ocm check spoke --context <its context>" + strings.Replace(hub, " --context", " --hub-context", 1)
	f := Finding{Severity: SeverityWarning, Cause: info.Message}
	switch info.Status {
	case ClusterPendingAccept:
		f.Code, f.Title, f.Fix = codeClusterWaits, "it asks to join and nobody has answered", accept
	case ClusterPendingCSR:
		f.Code, f.Title, f.Fix = codeClusterRequest, "it waits for its certificate", accept
	case ClusterJoining:
		f.Code, f.Title, f.Fix = codeClusterJoining, "accepted, and its agent has not reported", onSpoke
	case ClusterUnknown:
		f.Code, f.Severity, f.Title, f.Fix = codeClusterLease, SeverityError, c.late(info, mc), onSpoke
	case ClusterNotAvailable:
		f.Code, f.Severity, f.Title, f.Fix = codeClusterUnwell, SeverityError, "its API server is not healthy", onSpoke
	case ClusterDenied:
		f.Code, f.Title, f.Fix = codeClusterDenied, deniedTitle(info), accept
	case ClusterDeleting:
		f.Code, f.Title = codeClusterLeaves, "it is being deleted for "+duration.HumanDuration(c.run.now().Sub(mc.DeletionTimestamp.Time))
		f.Cause, f.Fix = orElse(info.Message, "finalizers: "+strings.Join(mc.Finalizers, ", ")), "kubectl ocm cluster remove "+info.Name+hub+" --force      if it is gone for good"
	default:
		return nil
	}
	return []Finding{f}
}

// asksAgain is a finding for an agent that has lost its certificate: it asks for
// another one under the name that it had, and its cluster may look well meanwhile.
func (c *checking) asksAgain(mc *clusterv1.ManagedCluster, requests []unstructured.Unstructured) []Finding {
	holder := mc.Annotations[clusterv1.AnnotationAgentName]
	if holder == "" || !mc.Spec.HubAcceptsClient || !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) {
		return nil
	}
	for i := range requests {
		q := parseRequest(&requests[i], nil, nil)
		if q.State == StatePending && q.Identity != "renewal" && q.Requester == clusterv1.UserPrefix+mc.Name+":"+holder {
			return []Finding{{Code: codeClusterRequest, Severity: SeverityWarning, Title: "its agent asks for a new certificate and nobody has answered",
				Cause: "certificatesigningrequest/" + q.Name + " of agent " + holder + " waits for approval", Fix: "kubectl ocm accept " + mc.Name + c.o.Hub.flag()}}
		}
	}
	return nil
}

// deniedTitle says what the agent of a denied cluster may still do.
func deniedTitle(info ClusterInfo) string {
	if info.Works.Total == 0 {
		return "it is denied: its agent has no rights"
	}
	return fmt.Sprintf("it is denied: its agent may only read and finish the works that it has (%d), until they are deleted", info.Works.Total)
}

// late says for how long a cluster has not been heard of, and how long is long.
func (c *checking) late(info ClusterInfo, mc *clusterv1.ManagedCluster) string {
	if info.LastSeen == nil {
		return "its lease was never renewed"
	}
	seconds := mc.Spec.LeaseDurationSeconds
	if seconds <= 0 {
		seconds = clusterv1.DefaultLeaseDurationSeconds
	}
	return fmt.Sprintf("lease not renewed for %s (limit %ds)", duration.HumanDuration(c.run.now().Sub(info.LastSeen.Time)), int64(seconds)*clusterv1.LeaseGraceFactor)
}

// orElse is the first text that says something.
func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}
