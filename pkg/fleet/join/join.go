// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/gate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Options say which cluster joins which hub, and how.
type Options struct {
	fleet.Common
	// Name of the cluster on the hub.
	Name string
	// Spoke is the cluster that joins or, in a hosted mode, the one on which its agent runs.
	Spoke *fleet.Cluster
	// Mode says where the agent runs. Empty and the modes on the managed cluster mean one process
	// there, unless an operator of ours serves Klusterlets on it, which then runs the agent.
	Mode operatorv1.InstallMode
	// Layout is LayoutSplit for an agent that an operator runs in Deployments, or LayoutCompact for
	// one that is a process of its own. Empty keeps what there is, and is compact at first. Both ways
	// are taken in place.
	Layout string
	// ManagedKubeconfig leads to the cluster that joins with a hosted agent, with the rights of an
	// administrator. The operator keeps it; the agent gets tokens of its own.
	ManagedKubeconfig []byte
	// Klusterlet is the name of the Klusterlet that declares the agent; empty means the default, or
	// for a hosted agent one that is made of the name of the cluster.
	// A cluster with several hubs has a Klusterlet for each, see member.CheckKlusterlet.
	Klusterlet string
	// Hub is the hub, when the caller is logged in to it. Token and CA are then created and
	// read there. Otherwise Token and Server are required.
	Hub *fleet.Cluster
	// Server is the URL of the hub. With Hub it replaces the address of the hub's context.
	Server string
	// Token is a join token.
	Token string
	// CA is the hub's CA bundle, when known.
	CA []byte
	// CAHash pins the hub's CA; empty trusts what the hub publishes, with a
	// warning.
	CAHash string
	// Internal makes the agent use the address that the hub publishes in cluster-info, for
	// hubs that have another address inside their network.
	Internal bool
	// ProxyURL is a forward proxy between agent and hub; ProxyCA its CA bundle.
	ProxyURL string
	ProxyCA  []byte
	// Accept accepts the cluster at once. It requires Hub.
	Accept bool
	// Labels are set on the ManagedCluster. They require Hub.
	Labels map[string]string
	// Annotations of the ManagedCluster; their keys begin with
	// agent.open-cluster-management.io.
	Annotations map[string]string
	// Image is that of the agent, Version the version of that image.
	Image, Version string
	// FeatureGates of registration and work, by name.
	FeatureGates map[string]bool
	// NarrowRights leaves the agent without the rights of the built-in role admin on its own
	// cluster, and without impersonation: executors of works then have to be granted to it by
	// name.
	NarrowRights bool
	// Rejoin moves a cluster away from its current hub or name.
	Rejoin bool
	// Adopt takes a cluster over from the agent and the operator of another distribution of this
	// API. The agent's identity and everything that works applied stay.
	Adopt bool
	// Replace takes the name from an agent that still reports: this cluster's own, removed
	// without its hub knowing, or that of a cluster which is given up.
	Replace bool
}

// Result is the result of Run.
type Result struct {
	// Cluster is the name on the hub.
	Cluster string `json:"cluster"`
	// Hub is the URL that the agent uses.
	Hub string `json:"hub"`
	// State is installed, requested, accepted or available.
	State string `json:"state"`
	// CAHash is the hash of the hub's CA.
	CAHash string `json:"ca-hash,omitempty"`
	// Action is created when the cluster had not been joined before.
	Action fleet.Action `json:"action"`
	// Items are the objects that were applied.
	Items []fleet.Change `json:"items"`
	// Plan is what a dry run says of a cluster that is taken over.
	Plan []fleet.Planned `json:"plan,omitempty"`
}

// The states of a Result.
const (
	Installed = "installed"
	Requested = "requested"
	Accepted  = "accepted"
	Available = "available"
)

// join is one run of Run.
type join struct {
	*Options
	*fleet.Run
	// hub is the connection of this program to the hub: logged in, or with the token.
	hub *fleet.Cluster
	// remote is the managed cluster of a hosted agent; see managed.
	remote *fleet.Cluster
	// operator is the Deployment of ours that runs the agent; nil without one.
	operator *appsv1.Deployment
	// alone is the Deployment of an agent that is a process of its own; nil without one. It is only
	// read where an operator runs agents, or is to.
	alone *appsv1.Deployment
	// served are the Deployments in which an operator runs an agent that is to be a process of its own;
	// stopped is set once they are gone, and idle is the namespace of an operator that is then to go.
	served  []*appsv1.Deployment
	stopped bool
	idle    *unstructured.Unstructured
	// agent is how the agent will connect.
	agent trust.Endpoint
	// bootstrap is the content of the bootstrap secret; nil keeps the current one.
	bootstrap []byte
	// published are the URLs that the joining cluster publishes for itself.
	published []operatorv1.ServerURL
	// before is what the cluster was joined as before this run; unknown is true when the hub
	// has no ManagedCluster of this name.
	before  *member.State
	unknown bool
	// returns is true where a cluster has joined under the name before and this one has no
	// certificate for it: then only the request its own agent sends counts.
	returns bool
	// asked is the request with which an agent that got new access to its hub asks for a
	// certificate there; empty while its current certificate is good enough.
	asked string
	// beside are the other Klusterlets of the cluster.
	beside []operatorv1.Klusterlet
	// others is another distribution's agent, to adopt; nil without one.
	others *others
	result Result
}

// Run installs the agent on a cluster and waits until the hub knows it; with Accept, until it
// is available. Everything that can be checked is checked before the first write. It can be
// repeated after any failure.
func Run(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	o.Klusterlet = cmp.Or(o.Klusterlet, operatorv1.DefaultKlusterletName)
	if o.Mode.IsHosted() && o.Klusterlet == operatorv1.DefaultKlusterletName {
		o.Klusterlet = member.HostedFor(o.Name)
	}
	j := &join{Options: &o, Run: r, result: Result{Cluster: o.Name, State: Installed, Action: fleet.Unchanged}}
	if err := o.check(); err != nil {
		return j.result, err
	}
	if err := j.openManaged(); err != nil {
		return j.result, err
	}
	for _, phase := range []func(context.Context) error{
		j.checkHub, j.checkSpoke, j.checkName, j.credentials, j.stopOthers, j.stopServed, j.install, j.plan, j.replaceAlone, j.leaveOperator, j.register,
	} {
		if err := phase(ctx); err != nil {
			return j.result, r.Fail(err)
		}
	}
	return j.result, nil
}

// check validates the options without a request.
func (o *Options) check() error {
	if err := cmp.Or(naming.Check(o.Name), member.CheckKlusterlet(o.Klusterlet)); err != nil {
		return err
	}
	switch {
	case o.Hub == nil && o.Token == "":
		return fleet.Misuse("the hub is not named", "", NameHub.With())
	case o.Hub == nil && o.Server == "":
		return fleet.Misuse("the address of the hub is missing", "", NameAddress.With())
	case o.Hub == nil && o.Accept:
		return fleet.Misuse("accepting needs the rights of a hub administrator", "a join token does not have them", AcceptThere.With("cluster", o.Name))
	case o.Hub == nil && len(o.Labels) > 0:
		return fleet.Misuse("labels can only be set by a hub administrator", "a join token does not have the right", NameHubContext.With())
	}
	if err := cmp.Or(o.checkHosted(), o.checkLayout()); err != nil {
		return err
	}
	if o.Server != "" {
		if err := trust.CheckURL("the address of the hub", o.Server); err != nil {
			return err
		}
	}
	if o.CAHash != "" {
		return trust.CheckHash(o.CAHash)
	}
	return nil
}

// checkHub finds out how to reach and trust the hub, and checks that it is one.
func (j *join) checkHub(ctx context.Context) error {
	j.Step("hub")
	describe, warning, err := j.reachHub(ctx)
	if err != nil {
		return err
	}
	if err := fleet.NeedHub(ctx, j.hub); err != nil {
		var e *fleet.Error
		if errors.Is(err, fleet.ErrNotHub) && errors.As(err, &e) && j.Hub != nil {
			e.Fix = OtherHub.On(j.hub)
		}
		if j.Token != "" && apierrors.IsUnauthorized(err) {
			return token.Rejected(j.hub, err)
		}
		return err
	}
	if j.Token != "" {
		if err := token.Usable(ctx, j.hub, j.Reads()); err != nil {
			return err
		}
	}
	if err := j.chooseAddress(ctx); err != nil {
		return err
	}
	if warning.Text == "" && trust.IsLoopback(j.agent.Server) && !trust.IsLoopback(j.Spoke.Server()) {
		warning = fleet.Note{Text: j.agent.Server + " is only valid on this machine: an agent elsewhere cannot reach it", Fix: ReachableHub.With()}
	}
	j.result.Hub = j.agent.Server
	if warning.Text != "" {
		j.Warn(describe+"; "+warning.Text, warning.Fix)
		return nil
	}
	j.Done(describe)
	return nil
}

// reachHub connects to the hub and describes how it is trusted.
func (j *join) reachHub(ctx context.Context) (description string, warning fleet.Note, err error) {
	if j.Hub != nil {
		if _, err := fleet.ServerVersion(ctx, j.Hub); err != nil {
			return "", warning, err
		}
		j.hub = j.Hub
		if j.agent, j.result.CAHash, err = trust.OfHub(ctx, j.Hub); err != nil {
			return "", warning, err
		}
		if j.CAHash != "" && j.CAHash != j.result.CAHash {
			return "", warning, trust.HashMismatch(j.agent.Server, fmt.Errorf("the hub has %s, expected %s", j.result.CAHash, j.CAHash))
		}
		return fmt.Sprintf("%s, CA %s", j.Hub, trust.ShortHash(j.result.CAHash)), warning, nil
	}
	d, err := trust.Discover(ctx, trust.Endpoint{Server: j.Server, CA: j.CA, ProxyURL: j.ProxyURL}, j.Token, j.CAHash)
	if err != nil {
		return "", warning, err
	}
	j.agent, j.result.CAHash = d.Endpoint, d.Hash
	j.hub, err = trust.Connect(d.Endpoint, j.Token)
	hash := trust.ShortHash(d.Hash)
	if d.Warning.Text != "" {
		hash = d.Hash // it is to be compared
	}
	return fmt.Sprintf("%s, CA pinned %s, token valid", j.Server, hash), d.Warning, err
}

// chooseAddress decides which address of the hub the agent will use.
func (j *join) chooseAddress(ctx context.Context) error {
	if j.Hub != nil && j.Server != "" {
		j.agent.Server = j.Server
	}
	if j.Hub != nil && len(j.CA) > 0 {
		j.agent.CA = j.CA
	}
	if j.Internal {
		info, err := trust.Published(ctx, j.hub)
		if err != nil {
			return fleet.Fail("the hub publishes no internal address", err, PublishAgain.With())
		}
		j.agent.Server, j.agent.CA = info.Server, info.CA
	}
	j.agent.ProxyURL = j.ProxyURL
	if len(j.ProxyCA) > 0 {
		if _, err := trust.Certificates(j.ProxyCA); err != nil {
			return fleet.Misuse("the CA of the proxy cannot be read", err.Error(), NameProxyCA.With())
		}
		j.agent.CA = append(append([]byte{}, j.agent.CA...), j.ProxyCA...)
	}
	return nil
}

// credentials prepares the content of the bootstrap secret. The current content is kept while
// it is usable, because a change makes the agent register again.
func (j *join) credentials(ctx context.Context) error {
	if j.others != nil && j.before.Hub != nil {
		// Another address of the hub would be another hub for the records of works.
		j.bootstrap, j.result.Hub = j.before.Bootstrap, j.before.Hub.Server
		j.agent = trust.Endpoint{Server: j.before.Hub.Server, CA: j.before.Hub.CAData, ProxyURL: j.before.Hub.ProxyURL}
		return nil
	}
	if j.before.Keeps(j.Name, j.agent) && ((j.before.Registered && !j.unknown) || j.before.Usable(ctx)) {
		j.bootstrap = j.before.Bootstrap
		return nil
	}
	secret := j.Token
	if secret == "" {
		if secret = fleet.RedactedToken; !j.Reads() {
			t, err := token.Create(ctx, token.Options{Common: fleet.Common{Timeout: j.Given.Timeout, Clock: j.Given.Clock, Random: j.Given.Random}, Hub: j.Hub,
				Cluster: j.Name})
			if err != nil {
				return err
			}
			secret = t.Token
			j.result.Items = append(j.result.Items, t.Items...)
		}
	}
	var err error
	j.bootstrap, err = trust.BootstrapKubeconfig(j.agent, secret)
	return err
}

// image returns the image of the agent.
func (j *join) image() string { return cmp.Or(j.Image, "ghcr.io/kubectl-ocm/ocm-agent:"+j.Version) }

// install applies the agent's objects.
func (j *join) install(ctx context.Context) error {
	j.Step("agent installed")
	image := j.image()
	objects, err := j.objects(image)
	if err != nil {
		return err
	}
	if err := j.keepOwners(ctx, objects); err != nil {
		return err
	}
	installed, err := j.installOperator(ctx, image)
	if err != nil {
		return err
	}
	changes, err := write.All(ctx, j.Run, j.Spoke, objects)
	changes = append(installed, changes...)
	j.result.Items = append(j.result.Items, changes...)
	if err != nil {
		return err
	}
	if j.result.Action = agentAction(changes); j.others != nil {
		j.result.Action = fleet.Configured // only its agent is new
	}
	if err := j.removeOldRoles(ctx, objects); err != nil {
		return err
	}
	if err := j.removeIdentity(ctx); err != nil {
		return err
	}
	detail := "namespace " + j.namespace() + " on " + j.Spoke.Where()
	if j.Reads() {
		detail += " (dry run)"
	}
	j.Done(detail)
	return nil
}

// keepOwners leaves what all agents of a cluster share labelled as the Klusterlet's that it belongs
// to. That one's agent would restore the label.
func (j *join) keepOwners(ctx context.Context, objects []*unstructured.Unstructured) error {
	if len(j.beside) == 0 && j.operator == nil {
		return nil
	}
	for _, u := range objects {
		if u.GetName() != operatorv1.NamespaceAgentAddOn && u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if j.operator != nil && j.idle == nil && u.GetName() == fleet.Klusterlets.GroupResource().String() {
			u.SetLabels(nil) // the operator needs it, whoever leaves
			continue
		}
		live, err := write.Live(ctx, j.Spoke, u)
		if err != nil {
			return fleet.Explain("reading "+fleet.Describe(u), j.Spoke, err)
		}
		if live == nil {
			continue
		}
		owner := live.GetLabels()[operatorv1.LabelCreatedByKlusterlet]
		if slices.ContainsFunc(j.beside, func(k operatorv1.Klusterlet) bool { return k.Name == owner }) {
			labels := u.GetLabels()
			labels[operatorv1.LabelCreatedByKlusterlet] = owner
			u.SetLabels(labels)
		}
	}
	return nil
}

// agentAction returns created when the Klusterlet did not exist before.
func agentAction(changes []fleet.Change) fleet.Action {
	for _, c := range changes {
		if c.Object.GetKind() == "Klusterlet" && c.Action == fleet.Created {
			return fleet.Created
		}
	}
	return fleet.Worst(changes)
}

// spec merges the options into the current spec of the Klusterlet.
func (j *join) spec() operatorv1.KlusterletSpec {
	var spec operatorv1.KlusterletSpec
	if j.before != nil && j.before.Klusterlet != nil {
		j.before.Klusterlet.Spec.DeepCopyInto(&spec)
	}
	if len(spec.ExternalServerURLs) == 0 {
		spec.ExternalServerURLs = j.published
	}
	if len(j.FeatureGates)+len(j.Annotations) == 0 {
		return spec
	}
	if spec.RegistrationConfiguration == nil {
		spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{}
	}
	c := spec.RegistrationConfiguration
	for k, v := range j.Annotations {
		if c.ClusterAnnotations == nil {
			c.ClusterAnnotations = map[string]string{}
		}
		c.ClusterAnnotations[gate.Annotation(k)] = v
	}
	registration, work := gate.Split(j.FeatureGates)
	c.FeatureGates = gate.Merge(c.FeatureGates, registration)
	if len(work) > 0 {
		if spec.WorkConfiguration == nil {
			spec.WorkConfiguration = &operatorv1.WorkAgentConfiguration{}
		}
		spec.WorkConfiguration.FeatureGates = gate.Merge(spec.WorkConfiguration.FeatureGates, work)
	}
	return spec
}

// labelCluster sets labels on the ManagedCluster of a hub that the caller is logged in to.
func (j *join) labelCluster(ctx context.Context) error {
	if len(j.Labels) == 0 || j.Hub == nil || j.Accept {
		return nil
	}
	u := fleet.Named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", j.Name)
	u.SetLabels(j.Labels)
	change, err := write.Merge(ctx, j.Run, j.Hub, u)
	if err != nil {
		return fleet.Explain("labelling managedcluster "+j.Name, j.Hub, err)
	}
	j.result.Items = append(j.result.Items, change)
	return nil
}
