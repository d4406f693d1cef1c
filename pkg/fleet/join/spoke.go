// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// checkSpoke refuses a cluster that is too old, or joined elsewhere.
func (j *join) checkSpoke(ctx context.Context) error {
	j.Step("cluster")
	v, err := fleet.ServerVersion(ctx, j.managed())
	if err != nil {
		return err
	}
	if err := fleet.AtLeast(j.managed(), v, fleet.OldestManaged, "managed cluster"); err != nil {
		return err
	}
	if err := j.checkApart(ctx); err != nil {
		return err
	}
	if j.before, err = member.Read(ctx, j.Spoke, j.Klusterlet); err != nil {
		return err
	}
	for _, check := range []func(context.Context) error{
		j.checkServed, j.checkLeaving, j.checkElsewhere, j.checkBeside, j.checkIdle, j.checkOthers, j.checkMode, j.checkNamespaces,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	j.published = publishedAddress(ctx, j.managed())
	j.Done(fmt.Sprintf("%s, Kubernetes %s", j.managed(), v))
	return nil
}

// publishedAddress returns the address that a cluster publishes for itself in cluster-info;
// nil when there is none, or one that only the cluster itself can reach.
func publishedAddress(ctx context.Context, c *fleet.Cluster) []operatorv1.ServerURL {
	info, err := trust.Published(ctx, c)
	if err != nil || trust.CheckURL("the published address", info.Server) != nil || trust.IsLoopback(info.Server) {
		return nil
	}
	address := operatorv1.ServerURL{URL: info.Server}
	if _, err := trust.Certificates(info.CA); err == nil {
		address.CABundle = info.CA
	}
	return []operatorv1.ServerURL{address}
}

// checkLeaving refuses to install into namespaces that are being deleted with an earlier
// agent: what is applied now would be deleted too.
func (j *join) checkLeaving(ctx context.Context) error {
	places := []place{{j.managed(), j.managedNamespace()}, {j.managed(), operatorv1.NamespaceAgentAddOn}}
	if j.Mode.IsHosted() {
		places = append(places, place{j.Spoke, j.namespace()})
	}
	for _, at := range places {
		ns, err := at.read(ctx)
		if err != nil {
			return err
		}
		if ns != nil && ns.GetDeletionTimestamp() != nil {
			return fleet.Refuse("namespace "+at.namespace+" is being deleted on "+at.on.String(), "an earlier agent is not gone yet",
				fleet.AwaitNamespace.On(at.on, "namespace", at.namespace))
		}
	}
	return nil
}

func (j *join) checkElsewhere(ctx context.Context) error {
	b := j.before
	if b != nil && b.Klusterlet.DeletionTimestamp != nil {
		return fleet.Refuse(fmt.Sprintf("the agent of %s is being removed", j.Spoke), "klusterlet/"+b.Klusterlet.Name+" is being deleted",
			FinishUnjoin.On(j.Spoke, "cluster", b.Name))
	}
	if b == nil || j.Rejoin {
		return nil
	}
	fix := UnjoinFirst.On(j.Spoke, "cluster", b.Name)
	if name := b.Name; name != "" && name != j.Name {
		return fleet.Refuse(fmt.Sprintf("%s is joined already, as %q", j.Spoke, name), "one agent has one name", fix)
	}
	if b.Hub != nil && !sameHub(b.Hub, j.agent) && !b.KnownAt(ctx, j.agent) {
		return fleet.Refuse(fmt.Sprintf("%s is joined already, to another hub", j.Spoke), fmt.Sprintf("its agent uses %s, not %s", b.Hub.Server, j.agent.Server),
			UnjoinOrAdd.On(j.Spoke, "cluster", b.Name))
	}
	return nil
}

// checkBeside refuses a second agent for one hub: both would apply works of the same names on the
// same cluster.
func (j *join) checkBeside(ctx context.Context) error {
	if err := j.readBeside(ctx); err != nil {
		return err
	}
	for _, k := range j.beside {
		if !j.Mode.IsHosted() && k.AgentNamespace() == j.namespace() {
			continue // without a namespace of its own it has no agent
		}
		managed, err := member.Managed(ctx, j.Spoke, &k)
		if err != nil || managed.Server() != j.managed().Server() {
			continue // the agent of another cluster
		}
		if err := j.checkAgent(ctx, j.Spoke, &k); err != nil {
			return err
		}
	}
	if !j.Mode.IsHosted() {
		return nil
	}
	there, err := klusterletsOf(ctx, j.managed())
	for i := range there {
		if !there[i].IsHosted() {
			err = cmp.Or(err, j.checkAgent(ctx, j.managed(), &there[i]))
		}
	}
	return err
}

// checkAgent refuses to join beside the agent of a Klusterlet on a cluster, if that has joined the
// same hub.
func (j *join) checkAgent(ctx context.Context, on *fleet.Cluster, k *operatorv1.Klusterlet) error {
	b, err := member.Read(ctx, on, k.Name)
	if err != nil {
		return err
	}
	if b == nil || b.Hub == nil || (!sameHub(b.Hub, j.agent) && !b.KnownAt(ctx, j.agent)) {
		return nil
	}
	return fleet.Refuse(fmt.Sprintf("%s is joined to this hub already, as %q", j.managed(), b.Name), "klusterlet/"+k.Name+" declares its agent",
		UnjoinKlusterlet.On(on, "cluster", b.Name, "klusterlet", k.Name))
}

// sameHub reports whether both mean the same hub: the same address, or the same CA.
func sameHub(have *kubeconfig.Config, want trust.Endpoint) bool {
	if have.Server == want.Server {
		return true
	}
	a, errA := trust.Certificates(have.CAData)
	b, errB := trust.Certificates(want.CA)
	return errA == nil && errB == nil && trust.Hash(a[0]) == trust.Hash(b[0])
}

// hasLostIdentity reports whether the agent of this cluster is installed under this name and has no
// identity: the identity was deleted, or never issued.
func (j *join) hasLostIdentity() bool {
	return j.before != nil && !j.before.Registered && j.before.Name == j.Name
}

// takeName returns the advice for a name whose agent still reports. A hub that knows this
// cluster's address proves nothing, so that only changes which advice comes first.
func (j *join) takeName(mc *clusterv1.ManagedCluster) fleet.Fix {
	known := slices.ContainsFunc(mc.Spec.ManagedClusterClientConfigs, func(c clusterv1.ClientConfig) bool {
		return c.URL == j.managed().Config.Host || slices.ContainsFunc(j.published, func(u operatorv1.ServerURL) bool { return u.URL == c.URL })
	})
	rejoin := ""
	if j.Rejoin {
		rejoin = "true"
	}
	if known {
		return TakeName.With("cluster", j.Name, "context", j.Spoke.Context, "hub", j.hub.Context, "rejoin", rejoin)
	}
	return OtherName.With("cluster", j.Name, "context", j.Spoke.Context, "hub", j.hub.Context, "rejoin", rejoin)
}

// checkName refuses a name that another live cluster holds.
func (j *join) checkName(ctx context.Context) error {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, j.hub.Client, fleet.ManagedClusters, "", j.Name)
	if apierrors.IsNotFound(err) {
		j.unknown = true
		return nil
	}
	if err != nil {
		return fleet.Explain("looking for the name on the hub", j.hub, err)
	}
	if mc.DeletionTimestamp != nil {
		return fleet.Refuse(fmt.Sprintf("the name %q is not free yet", j.Name), "managedcluster/"+j.Name+" is being deleted on the hub",
			AwaitCluster.On(j.hub, "cluster", j.Name))
	}
	if j.before != nil && j.before.Registered && j.before.Name == j.Name {
		return nil
	}
	j.returns = cluster.EverJoined(mc)
	if j.hasLostIdentity() {
		// The agent asks again under its former name; whether it is the same agent is checked
		// when it is accepted.
		j.Remark("name", fmt.Sprintf("the agent of %q has lost its certificate, and asks for a new one", j.Name))
		return nil
	}
	if cluster.Alive(mc) {
		if !j.Replace {
			return fleet.Refuse(fmt.Sprintf("another agent holds the name %q", j.Name), "it reported to the hub a short time ago",
				j.takeName(mc))
		}
		j.Remark("name", fmt.Sprintf("%q reported a short time ago; this cluster takes its place", j.Name))
		return nil
	}
	if j.returns {
		j.Remark("name", fmt.Sprintf("%q was joined before and no longer reports; this cluster takes its place", j.Name))
	}
	return nil
}
