// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// JoinOptions say which cluster joins which hub, and how.
type JoinOptions struct {
	Common
	// Name of the cluster on the hub.
	Name string
	// Spoke is the cluster that joins.
	Spoke *Cluster
	// Hub is the hub, when we are logged in to it. Then token and CA are made and
	// read there. Otherwise Token and Server are needed.
	Hub *Cluster
	// Server is the URL of the hub. With Hub it replaces the address of its
	// context.
	Server string
	// Token is a join token.
	Token string
	// CA is the hub's CA bundle, when it is known.
	CA []byte
	// CAHash pins the hub's CA; empty trusts what the hub publishes, with a
	// warning.
	CAHash string
	// Internal makes the agent use the address that the hub publishes in
	// cluster-info, for hubs that have another address inside their network.
	Internal bool
	// ProxyURL is a forward proxy between agent and hub; ProxyCA its CA bundle.
	ProxyURL string
	ProxyCA  []byte
	// Accept lets the cluster in at once. It needs Hub.
	Accept bool
	// Labels are put on the ManagedCluster. They need Hub.
	Labels map[string]string
	// Annotations of the ManagedCluster; their keys begin with
	// agent.open-cluster-management.io.
	Annotations map[string]string
	// Image of the agent, and Version that it is of.
	Image, Version string
	// FeatureGates of registration and work, by name.
	FeatureGates map[string]bool
	// NarrowRights leaves the agent without the rights of the built-in role admin
	// on its own cluster, and without impersonation: executors of works then have
	// to be granted to it by name.
	NarrowRights bool
	// Rejoin takes a cluster away from the hub or name that it has now.
	Rejoin bool
}

// JoinResult is what was reached.
type JoinResult struct {
	// Cluster is the name on the hub.
	Cluster string `json:"cluster"`
	// Hub is the URL that the agent uses.
	Hub string `json:"hub"`
	// State is installed, requested, accepted or available.
	State string `json:"state"`
	// CAHash is the hash of the hub's CA.
	CAHash string `json:"ca-hash,omitempty"`
	// Action is created when the cluster had not been joined before.
	Action Action `json:"action"`
	// Items are the objects that were applied.
	Items []Change `json:"items"`
}

// The states of a JoinResult.
const (
	JoinInstalled = "installed"
	JoinRequested = "requested"
	JoinAccepted  = "accepted"
	JoinAvailable = "available"
)

// join is one Join under way.
type join struct {
	*JoinOptions
	*run
	// hub is how we talk to the hub: logged in, or with the token.
	hub *Cluster
	// agent is how the agent will.
	agent Endpoint
	// bootstrap is the content of the bootstrap secret; nil keeps what is there.
	bootstrap []byte
	// published is how others reach the cluster that joins, as far as it says so.
	published []operatorv1.ServerURL
	// before is what the cluster was joined as when we came; unknown tells that
	// the hub has no ManagedCluster of the name.
	before  *joined
	unknown bool
	// asked is the request by which an agent that has another way to its hub now
	// asks for a certificate there; empty while the one that it has will do.
	asked  string
	result JoinResult
}

// Join installs the agent on a cluster and waits until the hub knows it; with
// Accept, until it is available. Everything that can be checked is checked
// before anything is written. It can be repeated after any failure.
func Join(ctx context.Context, o JoinOptions) (JoinResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	j := &join{JoinOptions: &o, run: r, result: JoinResult{Cluster: o.Name, State: JoinInstalled, Action: Unchanged}}
	if err := o.check(); err != nil {
		return j.result, err
	}
	for _, phase := range []func(context.Context) error{j.checkHub, j.checkSpoke, j.checkName, j.credentials, j.install, j.register} {
		if err := phase(ctx); err != nil {
			return j.result, r.fail(err)
		}
	}
	return j.result, nil
}

// check judges what was given, without a request.
func (o *JoinOptions) check() error {
	if err := CheckName(o.Name); err != nil {
		return err
	}
	switch {
	case o.Hub == nil && o.Token == "":
		return usage("the hub is not named", "", "name its context by --hub-context, or give --hub-apiserver and --token-file (kubectl ocm hub token prints them)")
	case o.Hub == nil && o.Server == "":
		return usage("the address of the hub is missing", "", "give --hub-apiserver https://...; kubectl ocm hub token prints it")
	case o.Hub == nil && o.Accept:
		return usage("--accept needs the rights of a hub administrator", "a join token does not have them", "name the hub's context by --hub-context, or accept there: kubectl ocm accept "+o.Name)
	case o.Hub == nil && len(o.Labels) > 0:
		return usage("labels can only be set by a hub administrator", "a join token does not have the right", "name the hub's context by --hub-context")
	}
	if o.Server != "" {
		if err := checkURL("the address of the hub", o.Server); err != nil {
			return err
		}
	}
	if o.CAHash != "" {
		return checkHash(o.CAHash)
	}
	return nil
}

// checkHub finds out how the hub is reached and trusted, and that it is one.
func (j *join) checkHub(ctx context.Context) error {
	j.step("hub")
	describe, warning, err := j.reachHub(ctx)
	if err != nil {
		return err
	}
	if err := needHub(ctx, j.hub); err != nil {
		var e *Error
		if errors.Is(err, ErrNotHub) && errors.As(err, &e) && j.Hub != nil {
			e.Fix = "kubectl ocm hub init" + j.hub.flag() + "      or name the hub's context by --hub-context"
		}
		if j.Token != "" && apierrors.IsUnauthorized(err) {
			return tokenError(j.hub, err)
		}
		return err
	}
	if j.Token != "" {
		if err := checkToken(ctx, j.hub, j.reads()); err != nil {
			return err
		}
	}
	if err := j.chooseAddress(ctx); err != nil {
		return err
	}
	if warning == "" && isLoopback(j.agent.Server) && !isLoopback(j.Spoke.Server()) {
		warning = j.agent.Server + " means this machine only: an agent elsewhere cannot reach it; use --internal-endpoint or --hub-apiserver"
	}
	j.result.Hub = j.agent.Server
	if warning != "" {
		j.warn(describe + "; " + warning)
		return nil
	}
	j.done(describe)
	return nil
}

// reachHub opens the hub and tells how it is trusted.
func (j *join) reachHub(ctx context.Context) (description, warning string, err error) {
	if j.Hub != nil {
		if _, err := serverVersion(ctx, j.Hub); err != nil {
			return "", "", err
		}
		j.hub = j.Hub
		if j.agent, j.result.CAHash, err = hubEndpoint(ctx, j.Hub); err != nil {
			return "", "", err
		}
		if j.CAHash != "" && j.CAHash != j.result.CAHash {
			return "", "", hashMismatch(j.agent.Server, fmt.Errorf("the hub has %s, wanted is %s", j.result.CAHash, j.CAHash))
		}
		return fmt.Sprintf("%s, CA %s", j.Hub, short(j.result.CAHash)), "", nil
	}
	d, err := trust(ctx, Endpoint{Server: j.Server, CA: j.CA, ProxyURL: j.ProxyURL}, j.Token, j.CAHash)
	if err != nil {
		return "", "", err
	}
	j.agent, j.result.CAHash = d.Endpoint, d.hash
	j.hub, err = connectWith(d.Endpoint, j.Token)
	hash := short(d.hash)
	if d.warning != "" {
		hash = d.hash // it is to be compared
	}
	return fmt.Sprintf("%s, CA pinned %s, token valid", j.Server, hash), d.warning, err
}

func short(hash string) string {
	if len(hash) > 19 {
		return hash[:19]
	}
	if hash == "" {
		return "public"
	}
	return hash
}

// chooseAddress settles which address of the hub the agent will use.
func (j *join) chooseAddress(ctx context.Context) error {
	if j.Hub != nil && j.Server != "" {
		j.agent.Server = j.Server
	}
	if j.Hub != nil && len(j.CA) > 0 {
		j.agent.CA = j.CA
	}
	if j.Internal {
		info, err := publishedInfo(ctx, j.hub)
		if err != nil {
			return failed("the hub publishes no internal address", err, "leave --internal-endpoint out, or run kubectl ocm hub init again on the hub")
		}
		j.agent.Server, j.agent.CA = info.server, info.ca
	}
	j.agent.ProxyURL = j.ProxyURL
	if len(j.ProxyCA) > 0 {
		if _, err := certificates(j.ProxyCA); err != nil {
			return usage("the CA of the proxy cannot be read", err.Error(), "give a PEM file by --proxy-ca-file")
		}
		j.agent.CA = append(append([]byte{}, j.agent.CA...), j.ProxyCA...)
	}
	return nil
}

// credentials prepares the content of the bootstrap secret. What is there is
// kept while it can still be used, because a change makes the agent register
// anew.
func (j *join) credentials(ctx context.Context) error {
	if j.before.keeps(j.Name, j.agent) && ((j.before.registered && !j.unknown) || j.before.usable(ctx)) {
		j.bootstrap = j.before.bootstrap
		return nil
	}
	token := j.Token
	if token == "" {
		if token = redactedToken; !j.reads() {
			t, err := Token(ctx, TokenOptions{Common: Common{Timeout: j.common.Timeout, Clock: j.common.Clock, Random: j.common.Random}, Hub: j.Hub, Cluster: j.Name})
			if err != nil {
				return err
			}
			token = t.Token
			j.result.Items = append(j.result.Items, t.Items...)
		}
	}
	var err error
	j.bootstrap, err = bootstrapKubeconfig(j.agent, token)
	return err
}

// install applies the agent's objects.
func (j *join) install(ctx context.Context) error {
	j.step("agent installed")
	image := j.Image
	if image == "" {
		image = "ghcr.io/kubectl-ocm/ocm-agent:" + j.Version
	}
	objects, err := agent.Objects(agent.Options{Image: image, ClusterName: j.Name, BootstrapKubeconfig: j.bootstrap, NarrowRights: j.NarrowRights, Spec: j.spec()})
	if err != nil {
		return err
	}
	changes, err := j.apply(ctx, j.Spoke, objects)
	j.result.Items = append(j.result.Items, changes...)
	if err != nil {
		return err
	}
	j.result.Action = agentAction(changes)
	if err := j.retire(ctx); err != nil {
		return err
	}
	if err := j.forget(ctx); err != nil {
		return err
	}
	detail := "namespace " + operatorv1.NamespaceAgent + " on " + j.Spoke.where()
	if j.reads() {
		detail += " (dry run)"
	}
	j.done(detail)
	return nil
}

// agentAction tells by the Klusterlet whether the cluster had been joined.
func agentAction(changes []Change) Action {
	for _, c := range changes {
		if c.Object.GetKind() == "Klusterlet" && c.Action == Created {
			return Created
		}
	}
	return Worst(changes)
}

// spec keeps what the Klusterlet says already and adds what was asked for.
func (j *join) spec() operatorv1.KlusterletSpec {
	var spec operatorv1.KlusterletSpec
	if j.before != nil && j.before.klusterlet != nil {
		j.before.klusterlet.Spec.DeepCopyInto(&spec)
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
		c.ClusterAnnotations[agentAnnotation(k)] = v
	}
	registration, work := splitGates(j.FeatureGates)
	c.FeatureGates = mergeGates(c.FeatureGates, registration)
	if len(work) > 0 {
		if spec.WorkConfiguration == nil {
			spec.WorkConfiguration = &operatorv1.WorkAgentConfiguration{}
		}
		spec.WorkConfiguration.FeatureGates = mergeGates(spec.WorkConfiguration.FeatureGates, work)
	}
	return spec
}

// labelCluster puts labels on the ManagedCluster of a hub that we are logged in
// to.
func (j *join) labelCluster(ctx context.Context) error {
	if len(j.Labels) == 0 || j.Hub == nil || j.Accept {
		return nil
	}
	u := named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", j.Name)
	u.SetLabels(j.Labels)
	change, err := j.merge(ctx, j.Hub, u)
	if err != nil {
		return explain("labelling managedcluster "+j.Name, j.Hub, err)
	}
	j.result.Items = append(j.result.Items, change)
	return nil
}
