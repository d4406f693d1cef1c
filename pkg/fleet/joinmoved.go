// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Keys of the agent's secret hub-kubeconfig-pending: which request is under way,
// and at which hub (kubeconfig.Config.ID).
const (
	pendingRequest = "csr-name"
	pendingHub     = "hub"
)

// knownAt tells whether the hub at e knows the agent by the certificate that it
// has: then it is the agent's hub, whatever its address and authority are now.
func (j *joined) knownAt(ctx context.Context, e Endpoint) bool {
	if j.kept == nil || len(j.kept.CertData) == 0 {
		return false
	}
	c, err := connectWith(e, "")
	if err != nil {
		return false
	}
	c.Config.CertData, c.Config.KeyData = j.kept.CertData, j.kept.KeyData
	if c, err = Connect(c.Config, ""); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	_, err = typed.Get[clusterv1.ManagedCluster](ctx, c.Client, managedClusters, "", j.name)
	return err == nil
}

// repointed tells that an agent which has an identity gets another way to its
// hub, or another hub.
func (j *join) repointed() bool {
	return j.before != nil && j.before.registered && !j.before.keeps(j.Name, j.agent)
}

// forget takes the identity away from an agent whose cluster the hub no longer
// has, or that gets another name: only then does it ask to be joined again.
func (j *join) forget(ctx context.Context) error {
	if j.reads() || j.before == nil || !j.before.registered {
		return nil
	}
	if renamed := j.before.name != j.Name; !renamed && (!j.unknown || j.repointed()) {
		return nil
	}
	if err := remove(ctx, j.Spoke, j.before.identity); err != nil {
		return explain("removing secret "+clusterv1.SecretHubKubeconfig, j.Spoke, err)
	}
	j.before.registered = false
	return nil
}

// follow waits until an agent that was repointed has taken its new way, or asks
// for a certificate there because the hub does not know the one that it has. One
// that has lost its certificate asks too: of the requests under its name that one
// counts whose key it keeps now.
func (j *join) follow(ctx context.Context) error {
	if j.lost() {
		_, asked, err := j.awaitWay(ctx, false)
		j.asked = asked
		return err
	}
	if !j.repointed() {
		return nil
	}
	j.step("agent repointed")
	kept, asked, err := j.awaitWay(ctx, false)
	switch {
	case err != nil:
		return err
	case kept:
		j.done("it uses " + j.agent.Server + " with the certificate that it has")
	default:
		j.asked = asked
		j.done(j.agent.Server + " does not know its certificate; it asks for a new one")
	}
	return nil
}

// arrived waits until an agent that had to ask for a certificate uses it.
func (j *join) arrived(ctx context.Context) error {
	if j.asked == "" {
		return nil
	}
	_, _, err := j.awaitWay(ctx, true)
	return err
}

// awaitWay watches the agent's own secrets for the wanted way to the hub: kept
// when it is in use, else the name of the request that is made for it.
func (j *join) awaitWay(ctx context.Context, onlyKept bool) (kept bool, asked string, err error) {
	wanted, err := kubeconfig.Parse(j.bootstrap)
	if err != nil {
		return false, "", err
	}
	q := await.Query{Client: j.Spoke.Client, Resource: secrets, Namespace: j.before.namespace(), Clock: j.common.Clock}
	err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		for _, item := range items {
			data := secretData(item)
			switch item.GetName() {
			case clusterv1.SecretHubKubeconfig:
				have, err := kubeconfig.ParseSecret(data)
				kept = err == nil && have.Difference(wanted) == ""
			case clusterv1.SecretHubKubeconfigPending:
				if string(data[pendingHub]) == wanted.ID() {
					asked = string(data[pendingRequest])
				}
			}
		}
		return kept || (asked != "" && !onlyKept), nil
	})
	return kept, asked, j.timedOut(ctx, err, "the agent to use "+j.agent.Server, j.blocker)
}

// secretData decodes what a Secret holds.
func secretData(u *unstructured.Unstructured) map[string][]byte {
	out := map[string][]byte{}
	encoded, _, _ := unstructured.NestedStringMap(u.Object, "data")
	for key, value := range encoded {
		if raw, err := base64.StdEncoding.DecodeString(value); err == nil {
			out[key] = raw
		}
	}
	return out
}
