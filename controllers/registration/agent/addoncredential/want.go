// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const (
	// maxRegistrations is how many registrations of one add-on are served.
	maxRegistrations = 16
	// maxAddOns is how many add-ons of a cluster are served, the oldest first.
	maxAddOns = 200
	// kubernetesSigners is the prefix of Kubernetes' own signers; an add-on may use the one
	// for clients and no other, because the others sign for nodes and the like.
	kubernetesSigners = "kubernetes.io/"
	// agentSigner signs for agents that register over gRPC.
	agentSigner = "open-cluster-management.io/grpc"
)

// Target is where a credential is kept.
type Target struct {
	// Hosted means the cluster the agent runs on, not the managed one.
	Hosted bool
	// Namespace and Name are those of the secret.
	Namespace, Name string
}

// pendingName returns the name of the secret, in the agent's own namespace, that holds the
// request for a target while it is in progress.
func (t Target) pendingName() string {
	return "addon-pending-" + digest(t)[:20]
}

// Want is a credential requested by an add-on.
type Want struct {
	Target
	// Cluster and AddOn are the names of the cluster and the add-on.
	Cluster, AddOn string
	// Signer is who signs the certificate.
	Signer string
	// Driver is token for a token; any other value means a certificate.
	Driver addonv1alpha1.DriverType
	// Subject is the subject of the certificate.
	Subject pkix.Name
	// Hub identifies the hub the credential is for.
	Hub string
	// Problem is why nothing is requested; empty when all is well.
	Problem string
}

// KubeClient reports whether the credential is for the hub's API server.
func (w Want) KubeClient() bool { return w.Signer == addonv1alpha1.KubeAPIServerSigner }

// Token reports whether the credential is a token.
func (w Want) Token() bool { return w.Driver == addonv1alpha1.DriverTypeToken }

// account returns the name of the token's ServiceAccount.
func (w Want) account() string { return w.AddOn + addonv1alpha1.ServiceAccountSuffix }

// Digest identifies the registration: a credential with another digest was made for another
// one.
func (w Want) Digest() string {
	w.Problem = ""
	return digest(w)
}

func digest(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		// Names, texts and flags can always be encoded as JSON.
		panic(err)
	}
	return textDigest(raw)
}

// prepare updates the status of an add-on to how the agent registers add-ons: the driver, and
// under the token driver the add-on's future user. The hub reacts to both.
func prepare(a *addonv1alpha1.ManagedClusterAddOn, driver addonv1alpha1.DriverType) {
	user := identity.AddOn{Cluster: a.Namespace, Name: a.Name}.TokenUser()
	for i := range a.Status.Registrations {
		r := &a.Status.Registrations[i]
		if r.SignerName != addonv1alpha1.KubeAPIServerSigner {
			continue
		}
		a.Status.KubeClientDriver = driver
		switch {
		case driver == addonv1alpha1.DriverTypeToken:
			r.Subject = addonv1alpha1.Subject{User: user}
		case r.Subject.User == user:
			// Left over from the token driver; the hub names another user, or the default
			// applies.
			r.Subject = addonv1alpha1.Subject{}
		}
	}
}

// sameRegistrations reports whether preparing an add-on changed nothing.
func sameRegistrations(a, b *addonv1alpha1.ManagedClusterAddOn) bool {
	return a.Status.KubeClientDriver == b.Status.KubeClientDriver && reflect.DeepEqual(a.Status.Registrations, b.Status.Registrations)
}

// targetsOf returns where an add-on's registrations are kept, with the same length and order
// as the registrations that are served.
func targetsOf(a *addonv1alpha1.ManagedClusterAddOn) []Target {
	var out []Target
	for _, r := range a.Status.Registrations[:min(len(a.Status.Registrations), maxRegistrations)] {
		t := Target{Hosted: addon.Hosted(a), Namespace: addon.Namespace(a), Name: a.Name + addonv1alpha1.SecretSuffixHubKubeconfig}
		if r.SignerName != addonv1alpha1.KubeAPIServerSigner {
			t.Name = a.Name + "-" + strings.ReplaceAll(r.SignerName, "/", "-") + addonv1alpha1.SecretSuffixClientCert
		}
		out = append(out, t)
	}
	return out
}

// wantsOf returns the credentials a prepared add-on requests. One that is refused has a
// Problem; the others are served.
func wantsOf(a *addonv1alpha1.ManagedClusterAddOn, hub string) []Want {
	var out []Want
	seen := map[Target]bool{}
	for i, t := range targetsOf(a) {
		r := a.Status.Registrations[i]
		w := Want{Target: t, Cluster: a.Namespace, AddOn: a.Name, Signer: r.SignerName, Driver: addonv1alpha1.DriverTypeCSR, Hub: hub}
		if w.KubeClient() {
			w.Driver = a.Status.KubeClientDriver
		}
		if !w.Token() {
			subject, err := subjectOf(a.Namespace, a.Name, w.KubeClient(), r.Subject)
			w.Subject = subject
			if err != nil {
				w.Problem = err.Error()
			}
		}
		if problem := w.nameProblem(); problem != "" {
			w.Problem = problem
		}
		if seen[t] {
			w.Problem = fmt.Sprintf("two registrations are kept in secret %s/%s: their signers must differ by more than / and -", t.Namespace, t.Name)
		}
		seen[t] = true
		out = append(out, w)
	}
	if n := len(a.Status.Registrations); n > maxRegistrations {
		out = append(out, Want{Cluster: a.Namespace, AddOn: a.Name, Problem: fmt.Sprintf("%d registrations, the first %d are served", n, maxRegistrations)})
	}
	return out
}

// nameProblem returns why a registration cannot be served because of its names.
func (w Want) nameProblem() string {
	own := []string{clusterv1.SecretHubKubeconfig, clusterv1.SecretBootstrapHubKubeconfig, clusterv1.SecretHubKubeconfigPending}
	switch {
	case len(validation.IsValidLabelValue(w.AddOn)) > 0:
		return fmt.Sprintf("add-on name %q: must have at most 63 characters, because requests have it as a label", w.AddOn)
	case len(validation.IsDNS1123Label(w.Namespace)) > 0:
		return fmt.Sprintf("install namespace %q: must be a DNS label of at most 63 characters", w.Namespace)
	case !w.KubeClient() && (strings.HasPrefix(w.Signer, kubernetesSigners) || w.Signer == agentSigner):
		return fmt.Sprintf("signer %s: it is not for add-ons", w.Signer)
	case len(validation.IsDNS1123Subdomain(w.Name)) > 0:
		return fmt.Sprintf("signer %s: the name of secret %q would not be valid", w.Signer, w.Name)
	case slices.Contains(own, w.Name):
		return fmt.Sprintf("secret %s is the agent's own: rename the add-on", w.Name)
	}
	return ""
}
