// SPDX-License-Identifier: Apache-2.0

package fleet

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
	"k8s.io/apimachinery/pkg/util/version"

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
	all, err := c.readFleet(ctx)
	if err != nil {
		return []CheckArea{{Name: "clusters", Findings: []Finding{unreadable(codeHubReached, err)}}}
	}
	var out []CheckArea
	missing := slices.Clone(wanted)
	available := 0
	versions := map[string]int{}
	for i := range all.clusters {
		mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](&all.clusters[i])
		if err != nil || (len(wanted) > 0 && !slices.Contains(wanted, mc.Name)) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == mc.Name })
		info := all.info(mc)
		found := append(c.cluster(ctx, info, mc, all), c.asksAgain(mc, all.csr[mc.Name])...)
		if info.Status == ClusterAvailable {
			available++
			versions[orElse(info.AgentVersion, "unknown")]++
		}
		switch {
		case len(found) > 0:
			out = append(out, CheckArea{Name: "cluster " + mc.Name, Findings: found})
		case len(wanted) > 0:
			out = append(out, CheckArea{Name: "cluster " + mc.Name, Findings: []Finding{{Code: codeClusterUnwell, Severity: SeverityOK, Title: "available"}}})
		}
	}
	for _, name := range missing {
		out = append(out, CheckArea{Name: "cluster " + name, Findings: []Finding{{Code: codeClusterJoining, Severity: SeverityError,
			Title: fmt.Sprintf("there is no managed cluster %q", name), Fix: "kubectl ocm cluster list" + c.o.Hub.flag()}}})
	}
	slices.SortFunc(out, func(a, b CheckArea) int { return strings.Compare(a.Name, b.Name) })
	if len(wanted) > 0 {
		return out
	}
	out, lines := c.folded(out)
	if available > 0 {
		lines = append([]Finding{{Code: codeClusterUnwell, Severity: SeverityOK,
			Title: fmt.Sprintf("%d of %d available, agents %s", available, len(all.clusters), countedText(versions))}}, lines...)
	}
	if len(lines) > 0 {
		out = append([]CheckArea{{Name: "clusters", Findings: lines}}, out...)
	}
	return out
}

// countedText says how many there are of each: "v0.1.0 (3), unknown (1)".
func countedText(counts map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	return strings.Join(out, ", ")
}

// maxOfCode is how many clusters are told of one by one with the same code, and
// maxWorksTold how many works.
const maxOfCode, maxWorksTold = 10, 50

// folded leaves the first clusters of each code, and makes one line a code of the
// others: what is wrong with a thousand clusters is one thing.
func (c *checking) folded(areas []CheckArea) ([]CheckArea, []Finding) {
	seen, more := map[string]int{}, map[string]*Finding{}
	var out []CheckArea
	for _, area := range areas {
		var kept []Finding
		for _, f := range area.Findings {
			seen[f.Code]++
			switch {
			case seen[f.Code] <= toldOf(f.Code):
				kept = append(kept, f)
			case more[f.Code] == nil:
				more[f.Code] = &Finding{Code: f.Code, Severity: f.Severity, Cause: f.Title, Fix: c.others(f.Code)}
			case f.Severity == SeverityError:
				more[f.Code].Severity = SeverityError
			}
		}
		if len(kept) > 0 {
			out = append(out, CheckArea{Name: area.Name, Findings: kept})
		}
	}
	var lines []Finding
	for _, code := range slices.Sorted(maps.Keys(more)) {
		f := more[code]
		f.Title = "on " + many(seen[code]-toldOf(code), "more cluster")
		if code == codeClusterWorks {
			f.Title = "so are " + many(seen[code]-toldOf(code), "more work")
		}
		lines = append(lines, *f)
	}
	return out, lines
}

func toldOf(code string) int {
	if code == codeClusterWorks {
		return maxWorksTold
	}
	return maxOfCode
}

// others lists the clusters of a code.
func (c *checking) others(code string) string {
	status := map[string]string{
		codeClusterWaits: "pendingaccept", codeClusterRequest: "pendingcsr", codeClusterJoining: "joining", codeClusterLease: "unknown",
		codeClusterUnwell: "notavailable", codeClusterDenied: "denied", codeClusterLeaves: "deleting",
	}[code]
	if code == codeClusterWorks {
		return "kubectl ocm work list --all" + c.o.Hub.flag()
	}
	if status == "" {
		return "kubectl ocm cluster list -o wide" + c.o.Hub.flag()
	}
	return "kubectl ocm cluster list --status " + status + c.o.Hub.flag()
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
		a := &agentCheck{checking: c, k: &agents[i]}
		a.learn(ctx)
		out = append(out, orElse(a.cluster, a.k.Spec.ClusterName))
	}
	return out, nil
}

// judged is a fleet and what its clusters are judged by.
type judged struct {
	*fleetState
	// places and sets are the names of namespaces of clusters, and of sets.
	places, sets map[string]bool
	// hub is the version of the hub, "" where it is not ours or cannot be told.
	hub   string
	going departures
}

// readFleet reads what all clusters are judged by: eight lists at most.
func (c *checking) readFleet(ctx context.Context) (*judged, error) {
	out := &judged{places: map[string]bool{}, sets: map[string]bool{}, going: departures{hub: c.o.Hub}}
	var places, sets []unstructured.Unstructured
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		out.fleetState, err = (&ListOptions{Hub: c.o.Hub, requests: true}).read(ctx)
		return err
	})
	group.Go(func() error {
		return listTogether(ctx, c.o.Hub,
			wanted{&places, query{resource: namespaces, labels: clusterv1.LabelClusterName}}, wanted{&sets, query{resource: managedClusterSets}})
	})
	group.Go(func() error {
		// Who may not read it is told so by the check of the hub.
		if d, err := hubDeployment(ctx, c.o.Hub); err == nil && d != nil && !othersHub(d) {
			out.hub = tagOf(imageOf(d))
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	addNames(out.places, places)
	addNames(out.sets, sets)
	out.now = c.o.Hub.now(c.run.now())
	return out, nil
}

// cluster judges one cluster; nothing means that all is well.
func (c *checking) cluster(ctx context.Context, info ClusterInfo, mc *clusterv1.ManagedCluster, all *judged) []Finding {
	out := c.state(info, mc, all)
	add := func(code string, severity Severity, title, cause, fix string) {
		out = append(out, Finding{Code: code, Severity: severity, Title: title, Cause: cause, Fix: fix})
	}
	hub := c.o.Hub.flag()
	if info.Clock == "skewed" {
		add(codeClusterClock, SeverityWarning, "its clock differs from the hub's", conditionText(mc.Status.Conditions, clusterv1.ConditionClockSynced), "set the cluster's clock")
	}
	if d := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDuplicateClusterName); d != nil && d.Status == metav1.ConditionTrue {
		add(codeClusterName, SeverityError, "another agent asks under its name", oneLine(d.Message),
			"kubectl ocm accept "+info.Name+" --replace"+hub+"      if it is this cluster, installed again; else join the other one under a name of its own")
	}
	if mc.Spec.HubAcceptsClient && mc.DeletionTimestamp == nil && !all.places[info.Name] {
		add(codeClusterRights, SeverityError, "its namespace on the hub is missing or not its own", conditionText(mc.Status.Conditions, clusterv1.ConditionHubAccepted), "kubectl ocm check hub"+hub)
	}
	if info.Set != "" && mc.DeletionTimestamp == nil && !all.sets[info.Set] {
		add(codeClusterSet, SeverityWarning, "it is in the cluster set "+info.Set+", and there is none", "its label "+clusterv1.LabelClusterSet+" names it",
			"kubectl ocm clusterset create "+info.Set+hub)
	}
	if apart(all.hub, info.AgentVersion) {
		add(codeClusterVersion, SeverityWarning, "its agent is "+info.AgentVersion+", the hub "+all.hub, "", c.joinLine(info.Name, c.contextOf(mc)))
	}
	return append(out, c.works(ctx, info, all)...)
}

// apart tells that two releases differ in their minor version. What is no release is
// not compared.
func apart(hub, agent string) bool {
	a, errA := version.ParseSemantic(hub)
	b, errB := version.ParseSemantic(agent)
	development := func(v *version.Version) bool { return v.Major() == 0 && v.Minor() == 0 }
	return errA == nil && errB == nil && !development(a) && !development(b) && (a.Major() != b.Major() || a.Minor() != b.Minor())
}

// state is a finding for a cluster whose state is not the wanted one.
func (c *checking) state(info ClusterInfo, mc *clusterv1.ManagedCluster, all *judged) []Finding {
	hub := c.o.Hub.flag()
	accept := "kubectl ocm accept " + info.Name + hub
	onSpoke := "kubectl ocm check spoke --context " + contextWord(c.contextOf(mc), "its") + strings.Replace(hub, " --context", " --hub-context", 1)
	f := Finding{Severity: SeverityWarning, Cause: info.Message}
	switch info.Status {
	case ClusterPendingAccept:
		f.Code, f.Title, f.Fix = codeClusterWaits, "it asks to join and nobody has answered", accept
	case ClusterPendingCSR:
		f.Code, f.Title, f.Fix = codeClusterRequest, "it waits for its certificate", accept
		if requestDenied(mc) != "" {
			f.Fix = accept + " --wait"
		}
	case ClusterJoining:
		f.Code, f.Title, f.Fix = codeClusterJoining, "accepted, and its agent has not reported", onSpoke
	case ClusterUnknown:
		f.Code, f.Severity, f.Title, f.Fix = codeClusterLease, SeverityError, c.late(info, mc), onSpoke
		if !apimeta.IsStatusConditionPresentAndEqual(mc.Status.Conditions, clusterv1.ConditionAvailable, metav1.ConditionUnknown) {
			// The hub has to notice it before anything can be said of the agent.
			f.Title, f.Cause, f.Fix = "the hub does not look after it", all.silent(mc), "kubectl ocm check hub"+hub
		}
	case ClusterNotAvailable:
		f.Code, f.Severity, f.Title, f.Fix = codeClusterUnwell, SeverityError, "its API server is not healthy", onSpoke
	case ClusterDenied:
		// The agent may have to ask once more before there is something to approve.
		f.Code, f.Title, f.Fix = codeClusterDenied, deniedTitle(info), accept+" --wait"
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

// contextOf names the context by which a person reaches a cluster, "" where that is
// not known.
func (c *checking) contextOf(mc *clusterv1.ManagedCluster) string {
	for _, client := range mc.Spec.ManagedClusterClientConfigs {
		if name := c.contextAt(client.URL); name != "" {
			return name
		}
	}
	return ""
}

// contextAt names the context of an API server.
func (c *checking) contextAt(server string) string {
	if c.o.ContextOf == nil || server == "" {
		return ""
	}
	return c.o.ContextOf(server)
}

// contextWord is a context as it is typed, or whose it has to be.
func contextWord(name, whose string) string {
	if name == "" {
		return "<" + whose + " context>"
	}
	return ShellWord(name)
}

// joinLine brings the agent of a cluster, or brings it up to date.
func (c *checking) joinLine(name, spoke string) string {
	return "kubectl ocm join " + name + " --context " + contextWord(spoke, "its") + " --hub-context " + contextWord(c.o.Hub.Context, "the hub's")
}

// late says for how long a cluster has not been heard of, and how long is long.
func (c *checking) late(info ClusterInfo, mc *clusterv1.ManagedCluster) string {
	if info.LastSeen == nil {
		return "its lease was never renewed"
	}
	return fmt.Sprintf("lease not renewed for %s (limit %ds)", duration.HumanDuration(c.run.now().Sub(info.LastSeen.Time)), int64(leaseLimit(mc).Seconds()))
}

// orElse is the first text that says something.
func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}
