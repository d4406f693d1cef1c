// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// authenticated is the group of all authenticated users; agents of 2025 and before ask for
// it.
const authenticated = "system:authenticated"

// whoIs returns the default identity of an instance's agent.
func whoIs(addOn *addonv1alpha1.ManagedClusterAddOn) identity.AddOn {
	return identity.AddOn{Cluster: addOn.Namespace, Name: addOn.Name}
}

// KubeClient gives an add-on that embeds it access to the API server of the hub as the
// default user, and approves its own requests for that.
type KubeClient struct {
	// AgentName is the last part of the user name; empty means the name of the add-on.
	// Changing it makes every agent ask for a new certificate.
	AgentName string
}

// Registrations returns the registration for the hub's API server.
func (k KubeClient) Registrations(_ context.Context, i addonkit.Instance) ([]addonv1alpha1.RegistrationConfig, error) {
	return []addonv1alpha1.RegistrationConfig{k.registration(i)}, nil
}

// Approve approves requests for exactly this registration.
func (k KubeClient) Approve(_ context.Context, i addonkit.Instance, csr *certificatesv1.CertificateSigningRequest) error {
	return Check(csr, i, []addonv1alpha1.RegistrationConfig{k.registration(i)})
}

func (k KubeClient) registration(i addonkit.Instance) addonv1alpha1.RegistrationConfig {
	who := whoIs(i.AddOn)
	return addonv1alpha1.RegistrationConfig{
		SignerName: addonv1alpha1.KubeAPIServerSigner,
		Subject:    addonv1alpha1.Subject{User: who.User(cmp.Or(k.AgentName, who.Name)), Groups: who.Groups()},
	}
}

// Wanted returns the registrations as they belong in the status: with the token driver the
// agent is a ServiceAccount, and writes that itself.
func Wanted(addOn *addonv1alpha1.ManagedClusterAddOn, registrations []addonv1alpha1.RegistrationConfig) []addonv1alpha1.RegistrationConfig {
	out := slices.Clone(registrations)
	for i := range out {
		if out[i].SignerName == addonv1alpha1.KubeAPIServerSigner && addOn.Status.KubeClientDriver == addonv1alpha1.DriverTypeToken {
			out[i].Subject = addonv1alpha1.Subject{User: whoIs(addOn).TokenUser()}
		}
	}
	return out
}

// kubeClient returns the registration for the API server of the hub, or nil.
func kubeClient(registrations []addonv1alpha1.RegistrationConfig) *addonv1alpha1.RegistrationConfig {
	for i := range registrations {
		if registrations[i].SignerName == addonv1alpha1.KubeAPIServerSigner {
			return &registrations[i]
		}
	}
	return nil
}
