// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Severity says how bad a finding is.
type Severity string

// The severities, from good to bad.
const (
	SeverityOK      Severity = "ok"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// Finding is what one check found.
type Finding struct {
	// Code names the check; "kubectl ocm check --explain CODE" tells of it.
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Title is one line, Cause why, Fix a command or an act that helps.
	Title string `json:"title"`
	Cause string `json:"cause,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// CheckArea is a hub, a cluster on it, or the agent of a cluster, and what was
// found there.
type CheckArea struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`
}

// CheckReport is what all checks found.
type CheckReport struct {
	Areas    []CheckArea `json:"areas"`
	OK       int         `json:"ok"`
	Warnings int         `json:"warnings"`
	Errors   int         `json:"errors"`
}

// CheckOptions say what to look at.
type CheckOptions struct {
	Common
	// Hub is the hub; nil when none is to be looked at.
	Hub *Cluster
	// Spoke is the cluster whose agent is to be looked at; nil for none.
	Spoke *Cluster
	// HubOnly looks at nothing on the hub but the hub itself, ClustersOnly at its
	// clusters, PlacementsOnly at its placements, AddOnsOnly at its add-ons.
	HubOnly, ClustersOnly, PlacementsOnly, AddOnsOnly bool
	// Clusters are those of the hub to look at; none means all, or the one that
	// Spoke is where that is another cluster.
	Clusters []string
	// Placements are those to look at; none means all.
	Placements []types.NamespacedName
	// AddOns are those to look at, by name; none means all.
	AddOns []string
	// Skip leaves checks out, by code.
	Skip []string
	// ContextOf names the context by which the caller reaches an API server, so that
	// what is printed can be typed; "" where there is none. It may be nil.
	ContextOf func(server string) string
}

// checkTimeout bounds each check, so that one that hangs holds up no other.
const checkTimeout = 10 * time.Second

// CheckSides finds out what a cluster is: a hub, one with an agent, or both. The
// error says that it is neither, or does not answer.
func CheckSides(ctx context.Context, c *Cluster) (hub, spoke *Cluster, err error) {
	if _, err := serverVersion(ctx, c); err != nil {
		return nil, nil, err
	}
	if IsHub(ctx, c) {
		hub = c
	}
	agents, err := listAll(ctx, c, query{resource: klusterlets})
	switch {
	case err != nil && hub == nil:
		return nil, nil, explain("listing klusterlets", c, err)
	case len(agents) > 0:
		spoke = c
	}
	if hub == nil && spoke == nil {
		return nil, nil, notHub(c, "it serves no managedclusters, and no agent of its own runs there")
	}
	return hub, spoke, nil
}

// Check looks for what keeps a fleet from working and names each cause with its
// fix. It reads only. What could not be read is a finding and not an error. All
// checks run at the same time, each for ten seconds at most.
func Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	c := &checking{o: &o, run: r}
	parts := c.parts()
	found := make([][]CheckArea, len(parts))
	var group errgroup.Group
	for i, part := range parts {
		group.Go(func() error {
			found[i] = part(ctx)
			return nil
		})
	}
	_ = group.Wait()
	var report CheckReport
	for _, area := range slices.Concat(found...) {
		area.Findings = slices.DeleteFunc(area.Findings, func(f Finding) bool { return slices.Contains(o.Skip, f.Code) })
		for _, f := range area.Findings {
			report.count(f)
		}
		if len(area.Findings) > 0 {
			report.Areas = append(report.Areas, area)
		}
	}
	return report, nil
}

// parts are what is looked at.
func (c *checking) parts() []func(context.Context) []CheckArea {
	var out []func(context.Context) []CheckArea
	o := c.o
	limited := o.HubOnly || o.ClustersOnly || o.PlacementsOnly || o.AddOnsOnly
	for _, part := range []struct {
		only bool
		look func(context.Context) []CheckArea
	}{{o.HubOnly, c.hub}, {o.ClustersOnly, c.clusters}, {o.PlacementsOnly, c.placements}, {o.AddOnsOnly, c.addOns}} {
		if o.Hub != nil && (part.only || !limited) {
			out = append(out, part.look)
		}
	}
	if o.Spoke != nil {
		out = append(out, c.spoke)
	}
	return out
}

func (r *CheckReport) count(f Finding) {
	switch f.Severity {
	case SeverityOK:
		r.OK++
	case SeverityWarning:
		r.Warnings++
	case SeverityError:
		r.Errors++
	}
}

// checking is one run of checks.
type checking struct {
	o   *CheckOptions
	run *run
}

// check is one look; what it returns stands in the order of the list.
type check struct {
	code string
	look func(context.Context) ([]Finding, error)
}

// all runs checks at the same time. One that fails is a finding of its code.
func (c *checking) all(ctx context.Context, checks []check) []Finding {
	found := make([][]Finding, len(checks))
	var group errgroup.Group
	for i, one := range checks {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			list, err := one.look(ctx)
			if err != nil {
				list = append(list, unreadable(one.code, err))
			}
			for j := range list {
				if list[j].Code == "" {
					list[j].Code = one.code
				}
			}
			found[i] = list
			return nil
		})
	}
	_ = group.Wait()
	return slices.Concat(found...)
}

// unreadable makes a finding of a check that could not be made.
func unreadable(code string, err error) Finding {
	f := Finding{Code: code, Severity: SeverityError, Title: oneLine(err.Error())}
	var e *Error
	if errors.As(err, &e) {
		f.Title, f.Cause, f.Fix = e.Message, e.Cause, e.Fix
	}
	return f
}

func good(format string, args ...any) []Finding {
	return []Finding{{Severity: SeverityOK, Title: fmt.Sprintf(format, args...)}}
}

// reach is the check that an API server answers at all.
func (c *checking) reach(code string, cluster *Cluster) check {
	return check{code, func(ctx context.Context) ([]Finding, error) {
		from := c.run.now()
		version, err := serverVersion(ctx, cluster)
		if err != nil {
			return nil, err
		}
		return good("API server reachable, %s, %d ms", version, c.run.common.Clock.Since(from).Milliseconds()), nil
	}}
}

// CheckCode is one entry of the catalogue of checks.
type CheckCode struct {
	Code string `json:"code"`
	// Title is what is checked, Text what it means and what to do when it fails.
	Title string `json:"title"`
	Text  string `json:"text"`
}

// The codes: 01xx this machine, 02xx the hub, 03xx a cluster on its hub, 04xx the
// agent on its cluster, 05xx a placement, 07xx an add-on.
const (
	codeShadowed         = "OCM0105"
	codeHubReached       = "OCM0201"
	codeHubInstalled     = "OCM0202"
	codeHubRuns          = "OCM0203"
	codeHubAddress       = "OCM0204"
	codeHubKinds         = "OCM0205"
	codeHubAdmission     = "OCM0206"
	codeHubSigner        = "OCM0207"
	codeHubForeign       = "OCM0208"
	codeClusterWaits     = "OCM0301"
	codeClusterRequest   = "OCM0302"
	codeClusterJoining   = "OCM0303"
	codeClusterLease     = "OCM0304"
	codeClusterUnwell    = "OCM0305"
	codeClusterDenied    = "OCM0306"
	codeClusterLeaves    = "OCM0307"
	codeClusterClock     = "OCM0308"
	codeClusterName      = "OCM0309"
	codeClusterRights    = "OCM0310"
	codeClusterWorks     = "OCM0311"
	codeClusterSet       = "OCM0312"
	codeClusterVersion   = "OCM0313"
	codeSpokeReached     = "OCM0401"
	codeSpokeAgent       = "OCM0402"
	codeSpokeKlusterlet  = "OCM0403"
	codeSpokeCertificate = "OCM0404"
	codeSpokeHub         = "OCM0405"
	codeSpokeIdentity    = "OCM0406"

	codePlacementNoBinding = "OCM0501"
	codePlacementUnbound   = "OCM0502"
	codePlacementEmpty     = "OCM0503"
	codePlacementPredicate = "OCM0504"
	codePlacementCount     = "OCM0505"
	codePlacementSpec      = "OCM0506"
	codePlacementScores    = "OCM0507"
	codePlacementDecided   = "OCM0508"

	codeAddOnRegistered   = "OCM0701"
	codeAddOnPlacement    = "OCM0702"
	codeAddOnConfig       = "OCM0703"
	codeAddOnRegistration = "OCM0704"
	codeAddOnCredential   = "OCM0705"
	codeAddOnWorks        = "OCM0706"
	codeAddOnHealth       = "OCM0707"
	codeAddOnLeaves       = "OCM0708"
	codeAddOnCluster      = "OCM0709"
	codeAddOnTemplate     = "OCM0710"
	codeAddOnToken        = "OCM0711"
	codeAddOnRollout      = "OCM0712"
)

// Shadowed is the code of the check for programs that hide commands of the
// plugin, which only the plugin can make.
const Shadowed = codeShadowed

// CheckCodes is the catalogue of checks, by code.
func CheckCodes() []CheckCode {
	return []CheckCode{
		{codeShadowed, "nothing on PATH hides a command", "kubectl runs a program kubectl-ocm-X in place of \"kubectl ocm X\". Remove or rename it, unless it is wanted."},
		{codeHubReached, "the hub's API server answers", "Everything goes through it. Look at the address of the context, the network, the proxy and your login."},
		{codeHubInstalled, "the hub is installed as it was declared", "The conditions of clustermanager/" + operatorv1.DefaultClusterManagerName + " say what the hub could not apply, and why."},
		{codeHubRuns, "the hub's pods run", "Without them nothing is accepted, renewed or scheduled. Clusters go on with what they have."},
		{codeHubAddress, "other machines can reach the hub", "The hub publishes the address that agents use. One that means this machine only is of no use elsewhere: hub init --apiserver-url."},
		{codeHubKinds, "the hub's kinds are served", "A definition that is not established makes its objects unreadable for hub, agents and people."},
		{codeHubAdmission, "the hub's admission answers", "It keeps agents and people from what they have no right to. Each webhook is asked by a write that is never stored. \"kubectl ocm hub init\" puts it back."},
		{codeHubSigner, "certificates are signed", "kube-controller-manager signs the agents' certificates. While it is away nobody can join and certificates run out."},
		{codeHubForeign, "the hub's deployment is as it was installed", "Another container, image or number of replicas is not what the hub was tested with, and may read its credentials. \"kubectl ocm hub init\" puts it back."},
		{codeClusterWaits, "clusters are let in or refused", "A cluster asks to join. Compare the key that join printed, then accept or deny it."},
		{codeClusterRequest, "certificate requests are answered", "A cluster that is accepted waits for its certificate. accept tells who asked and checks the request."},
		{codeClusterJoining, "accepted clusters have joined", "The agent has not reported yet. Look at it on its own cluster."},
		{codeClusterLease, "clusters report", "The hub has not heard of the cluster for longer than five lease durations. Its works go on; nothing new reaches it."},
		{codeClusterUnwell, "clusters are healthy", "The agent reports that its own API server does not answer as it should."},
		{codeClusterDenied, "no cluster is denied", "Somebody took the acceptance back. accept lets it in again."},
		{codeClusterLeaves, "no cluster hangs in its deletion", "Add-ons go first, then works, which the agent removes. A cluster that is gone for good is removed with --force."},
		{codeClusterClock, "clocks agree", "Leases and certificates go by clocks. Set the cluster's clock, by NTP for example."},
		{codeClusterName, "names are used by one cluster", "Another agent asks under a name that is in use: the same cluster installed again, or another one. A person says which, by accept."},
		{codeClusterRights, "accepted clusters have their namespace", "The hub makes it when it accepts the cluster. Where it is missing, the hub is not running or was kept from it."},
		{codeClusterWorks, "works are applied and available", "\"kubectl ocm work list\" shows the first manifest that fails, and why."},
		{codeClusterSet, "clusters are in sets that exist", "The label " + clusterv1.LabelClusterSet + " names a set that nobody has made: no placement finds the cluster by it."},
		{codeClusterVersion, "agents go with the hub", "Agent and hub of one minor version are tested together. join with this program brings an agent up to date."},
		{codeSpokeReached, "the cluster's API server answers", "Look at the address of the context, the network, the proxy and your login."},
		{codeSpokeAgent, "the agent's pod runs", "Without it nothing new is applied, and the hub calls the cluster Unknown after five lease durations."},
		{codeSpokeKlusterlet, "the agent is well", "The conditions of the klusterlet say what the agent hangs on: its bootstrap kubeconfig, the hub, its rights."},
		{codeSpokeCertificate, "the agent's certificate is good", "It is renewed at three quarters of its life. One that ran out is asked for anew, and somebody accepts that."},
		{codeSpokeHub, "the hub answers under the agent's address", "Seen from this machine, by the CA that the agent has pinned. After a move of the hub, type the join once more."},
		{codeSpokeIdentity, "the klusterlet names the cluster that the agent is", "The agent is who its certificate says. A klusterlet that names another cluster was edited, by another installer for example; put the name back."},
		{codePlacementNoBinding, "namespaces with placements are bound to a set", "A placement selects from the cluster sets that its namespace is bound to. Without a binding it selects nothing: clusterset bind."},
		{codePlacementUnbound, "placements name sets that they can select from", "A set that is named has to be there, and bound to the namespace; one whose selector cannot be read gives nobody new."},
		{codePlacementEmpty, "the sets of placements have clusters", "Put clusters into the set, or let the placement select from another one."},
		{codePlacementPredicate, "predicates fit clusters", "\"kubectl ocm placement explain\" says of every cluster which requirement does not hold, and what is there instead."},
		{codePlacementCount, "placements select as many clusters as they want", "Predicates, taints and spread constraints leave fewer than are wanted. \"kubectl ocm placement explain\" names what keeps each one out."},
		{codePlacementSpec, "placements can be followed", "The spec has a mistake: an unknown prioritizer or operator, an expression that does not compile. The hub keeps the last decisions; correct the field that is named."},
		{codePlacementScores, "scores of add-ons are there", "A placement ranks by a score that no cluster has, or that has expired: it counts 0. The add-on that writes it is not installed or not well."},
		{codePlacementDecided, "placements are decided", "The hub writes a condition within a second. Where it does not, look at the hub itself."},
		{codeAddOnRegistered, "add-ons are registered and managed", "An add-on needs a ClusterManagementAddOn, or nothing of it is deployed. Its lifecycle annotation says whether the hub installs it."},
		{codeAddOnPlacement, "the placements of add-ons are there and select", "An install strategy brings an add-on to what its placements select. One that is missing or undecided brings it nowhere and takes it from nowhere."},
		{codeAddOnConfig, "configurations of add-ons are there and supported", "A configuration that is not there, or that the add-on's controller does not read, holds up the rollout on its clusters."},
		{codeAddOnRegistration, "add-ons are registered on their clusters", "The add-on's controller says who its agent is and gives it rights. What it may not give somebody else has to, by the commands that it names."},
		{codeAddOnCredential, "agents of add-ons have credentials", "The certificate request of an agent is approved by the add-on's controller, or by a person: kubectl certificate approve."},
		{codeAddOnWorks, "manifests of add-ons are applied", "The cluster refused an object, or the works could not be made. \"kubectl ocm work list\" shows the first manifest that fails, and why."},
		{codeAddOnHealth, "add-ons work on their clusters", "The agent renews a lease in its namespace every minute, or its workloads are probed. Look at its pods on the cluster."},
		{codeAddOnLeaves, "no add-on hangs in its deletion", "A hook runs on the cluster before an add-on goes. One that cannot run is given up at a deadline: the annotation " + addonv1alpha1.AnnotationHookDeadline + "."},
		{codeAddOnCluster, "clusters of add-ons are there", "An add-on lives in the namespace of its cluster, and a hosted one needs the cluster that hosts it, too."},
		{codeAddOnTemplate, "templates of add-ons are there and render", "\"kubectl ocm addon create --render CLUSTER\" shows what a cluster would get, and what is wrong with it."},
		{codeAddOnToken, "add-ons under the token driver get tokens", "A hub with narrow rights for add-ons makes tokens only where a person lets it, because that right reaches every account: bind ClusterRole cluster-manager-token-driver."},
		{codeAddOnRollout, "rollouts of add-ons go on", "More clusters are out of time than maxFailures allows. When they recover it goes on; \"kubectl ocm addon resume\" lets it go on without them."},
	}
}
