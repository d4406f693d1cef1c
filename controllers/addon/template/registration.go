// SPDX-License-Identifier: Apache-2.0

package template

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// agentSuffix follows the name of the add-on in the name of a template's agent.
const agentSuffix = "-agent"

// maxVolume is the longest name of a volume, and volumeDigest the length of the digest at the
// end of a name that would be longer.
const maxVolume, volumeDigest = 63, 8

// Registration is one credential that the agent needs.
type Registration struct {
	// Config is its entry in the status of the ManagedClusterAddOn.
	Config addonv1alpha1.RegistrationConfig
	// HubPermissions are the rights on the hub that come with access to its API server.
	HubPermissions []addonv1alpha1.HubPermissionConfig
	// SigningCA is the authority of a custom signer, nil for the hub's API server.
	SigningCA *addonv1alpha1.SigningCARef
}

// isKubeClient reports whether the credential is for the hub's API server.
func (g Registration) isKubeClient() bool { return g.SigningCA == nil }

// secret returns the name of the secret that the registration agent maintains for it.
func (g Registration) secret(addOn string) string {
	if g.isKubeClient() {
		return addOn + addonv1alpha1.SecretSuffixHubKubeconfig
	}
	return addOn + "-" + strings.ReplaceAll(g.Config.SignerName, "/", "-") + addonv1alpha1.SecretSuffixClientCert
}

func (g Registration) folder() string {
	if g.isKubeClient() {
		return hubKubeconfigFolder
	}
	return mountFolder + "/" + strings.ReplaceAll(g.Config.SignerName, "/", "-")
}

// volume returns the name of its volume. The name of a signer may be longer than that of a
// volume may be; a digest then keeps the names distinct.
func (g Registration) volume() string {
	if g.isKubeClient() {
		return "hub-kubeconfig"
	}
	name := "cert-" + strings.NewReplacer("/", "-", ".", "-").Replace(g.Config.SignerName)
	if len(name) <= maxVolume {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxVolume-volumeDigest-1] + "-" + hex.EncodeToString(sum[:])[:volumeDigest]
}

// registrations reads the credentials that the template requests. Several entries of type
// KubeClient are one credential with all their rights.
func (r *render) registrations() error {
	t := r.in.Template
	who := identity.AddOn{Cluster: r.in.Cluster.Name, Name: t.Spec.AddonName}
	own := addonv1alpha1.Subject{User: who.User(who.Name + agentSuffix), Groups: who.Groups()}
	var out []Registration
	kube, signers := -1, map[string]bool{}
	for i, g := range t.Spec.Registration {
		at := fmt.Sprintf("spec.registration[%d]", i)
		refuse := func(field, problem, fix string) error {
			return &Error{Source: source(t), Field: at + field, Problem: problem, Fix: fix}
		}
		switch g.Type {
		case addonv1alpha1.RegistrationTypeKubeClient:
			rights, field := permissionsOf(g.KubeClient)
			if field != "" {
				return refuse(field, "must be set", "say which role the agent gets")
			}
			if kube < 0 {
				kube = len(out)
				out = append(out, Registration{Config: addonv1alpha1.RegistrationConfig{SignerName: addonv1alpha1.KubeAPIServerSigner, Subject: own}})
			}
			out[kube].HubPermissions = append(out[kube].HubPermissions, rights...)
		case addonv1alpha1.RegistrationTypeCustomSigner:
			s := g.CustomSigner
			if s == nil {
				return refuse(".customSigner", "must be set", "name the signer and its authority")
			}
			made := Registration{
				SigningCA: &s.SigningCA, Config: addonv1alpha1.RegistrationConfig{SignerName: s.SignerName, Subject: ptr.Deref(s.Subject, own)},
			}
			if s.SignerName == addonv1alpha1.KubeAPIServerSigner {
				return refuse(".customSigner.signerName", "is the signer of the hub's API server", "use the type KubeClient")
			}
			// The agent would keep both in one secret.
			if signers[made.folder()] {
				return refuse(".customSigner.signerName", "is kept in the secret of another registration",
					"name each signer once; two of them must differ by more than / and -")
			}
			signers[made.folder()] = true
			out = append(out, made)
		default:
			return refuse(".type", "must be KubeClient or CustomSigner", "correct it")
		}
	}
	r.out.Registrations = out
	return nil
}

// permissionsOf returns the rights on the hub, or the field that is missing.
func permissionsOf(k *addonv1alpha1.KubeClientRegistrationConfig) (rights []addonv1alpha1.HubPermissionConfig, missing string) {
	if k == nil {
		return nil, ""
	}
	for i, p := range k.HubPermissions {
		at := fmt.Sprintf(".kubeClient.hubPermissions[%d]", i)
		switch {
		case p.Type == addonv1alpha1.HubPermissionTypeCurrentCluster && (p.CurrentCluster == nil || p.CurrentCluster.ClusterRoleName == ""):
			return nil, at + ".currentCluster.clusterRoleName"
		case p.Type == addonv1alpha1.HubPermissionTypeSingleNamespace && (p.SingleNamespace == nil || p.SingleNamespace.Namespace == ""):
			return nil, at + ".singleNamespace.namespace"
		case p.Type == addonv1alpha1.HubPermissionTypeSingleNamespace && p.SingleNamespace.RoleRef.Name == "":
			return nil, at + ".singleNamespace.roleRef.name"
		case p.Type != addonv1alpha1.HubPermissionTypeCurrentCluster && p.Type != addonv1alpha1.HubPermissionTypeSingleNamespace:
			return nil, at + ".type"
		}
	}
	return k.HubPermissions, ""
}
