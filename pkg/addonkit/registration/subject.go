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

// authenticated is the group that everybody is in; agents of 2025 and before ask for
// it.
const authenticated = "system:authenticated"

// whoIs is who the agent of an instance is unless something else is said.
func whoIs(addOn *addonv1alpha1.ManagedClusterAddOn) identity.AddOn {
	return identity.AddOn{Cluster: addOn.Namespace, Name: addOn.Name}
}

// KubeClient gives an add-on that embeds it access to the API server of the hub, as
// the default user, and approves the requests for it that are its own.
type KubeClient struct {
	// AgentName ends the name of the user; empty is the name of the add-on. Another
	// name makes every agent ask for a new certificate.
	AgentName string
}

// Registrations is the one access.
func (k KubeClient) Registrations(_ context.Context, i addonkit.Instance) ([]addonv1alpha1.RegistrationConfig, error) {
	return []addonv1alpha1.RegistrationConfig{k.registration(i)}, nil
}

// Approve approves what is exactly the access.
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

// Wanted are registrations as they stand in the status: under the token driver the
// agent is a ServiceAccount, and writes so itself.
func Wanted(addOn *addonv1alpha1.ManagedClusterAddOn, registrations []addonv1alpha1.RegistrationConfig) []addonv1alpha1.RegistrationConfig {
	out := slices.Clone(registrations)
	for i := range out {
		if out[i].SignerName == addonv1alpha1.KubeAPIServerSigner && addOn.Status.KubeClientDriver == addonv1alpha1.DriverTypeToken {
			out[i].Subject = addonv1alpha1.Subject{User: whoIs(addOn).TokenUser()}
		}
	}
	return out
}

// kubeClient is the access to the API server of the hub; nil for none.
func kubeClient(registrations []addonv1alpha1.RegistrationConfig) *addonv1alpha1.RegistrationConfig {
	i := slices.IndexFunc(registrations, func(r addonv1alpha1.RegistrationConfig) bool {
		return r.SignerName == addonv1alpha1.KubeAPIServerSigner
	})
	if i < 0 {
		return nil
	}
	return &registrations[i]
}
