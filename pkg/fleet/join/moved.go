// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// Keys of the agent's secret hub-kubeconfig-pending: which request is in progress, and at
// which hub (kubeconfig.Config.ID).
const (
	pendingRequest = "csr-name"
	pendingHub     = "hub"
)

// isRepointed reports whether an agent that has an identity gets another address of its hub, or
// another hub.
func (j *join) isRepointed() bool {
	return j.before != nil && j.before.Registered && !j.before.Keeps(j.Name, j.agent)
}

// removeIdentity removes the identity of an agent whose cluster the hub no longer has, or that gets
// another name: only then does it ask to join again.
func (j *join) removeIdentity(ctx context.Context) error {
	if j.Reads() || j.before == nil || !j.before.Registered {
		return nil
	}
	if renamed := j.before.Name != j.Name; !renamed && (!j.unknown || j.isRepointed()) {
		return nil
	}
	if err := fleet.Remove(ctx, j.Spoke, j.before.Identity); err != nil {
		return fleet.Explain("removing secret "+clusterv1.SecretHubKubeconfig, j.Spoke, err)
	}
	j.before.Registered = false
	return nil
}

// followRepointed waits until a repointed agent has switched to its new hub access, or asks for a
// certificate there because the hub does not know the current one. An agent without a certificate
// for a name that the hub knows asks too: of the requests under its name, the one whose key the
// agent holds now counts.
func (j *join) followRepointed(ctx context.Context) error {
	if j.returns || j.hasLostIdentity() {
		_, asked, err := j.awaitAccess(ctx, false)
		j.asked = asked
		return err
	}
	if !j.isRepointed() {
		return nil
	}
	j.Step("agent repointed")
	kept, asked, err := j.awaitAccess(ctx, false)
	switch {
	case err != nil:
		return err
	case kept:
		j.Done("it uses " + j.agent.Server + " with the certificate that it has")
	default:
		j.asked = asked
		j.Done(j.agent.Server + " does not know its certificate; it asks for a new one")
	}
	return nil
}

// awaitCertificate waits until an agent that had to ask for a certificate uses it.
func (j *join) awaitCertificate(ctx context.Context) error {
	if j.asked == "" {
		return nil
	}
	_, _, err := j.awaitAccess(ctx, true)
	return err
}

// awaitAccess watches the agent's own secrets for the wanted hub access: kept when it is in use,
// otherwise the name of the request that is made for it.
func (j *join) awaitAccess(ctx context.Context, onlyKept bool) (kept bool, asked string, err error) {
	wanted, err := kubeconfig.Parse(j.bootstrap)
	if err != nil {
		return false, "", err
	}
	q := await.Query{Client: j.Spoke.Client, Resource: fleet.Secrets, Namespace: j.namespace(), Clock: j.Given.Clock}
	err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		for _, item := range items {
			data := fleet.SecretData(item)
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
	return kept, asked, j.TimedOut(ctx, err, "the agent to use "+j.agent.Server, j.blocker)
}
