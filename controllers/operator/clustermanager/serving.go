// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// servingSecrets returns the Secrets of the serving certificates, keyed by the DNS name that
// each is for.
func servingSecrets() map[string]string {
	return map[string]string{
		ServingName(hub.Namespace, operatorv1.ServiceRegistrationWebhook): operatorv1.SecretRegistrationWebhookServingCert,
		ServingName(hub.Namespace, operatorv1.ServiceWorkWebhook):         operatorv1.SecretWorkWebhookServingCert,
		ServingName(hub.Namespace, operatorv1.ServiceAddOnWebhook):        operatorv1.SecretAddOnWebhookServingCert,
		PlacementName(): operatorv1.SecretPlacementDebugServingCert,
		ProxyName():     operatorv1.SecretProxyServingCert,
	}
}

// ServingName returns the DNS name of a Service.
func ServingName(namespace, service string) string { return service + "." + namespace + ".svc" }

// ServingNames returns the DNS names at which the hub process, or the operator, serves
// admission and conversion.
func ServingNames() []string {
	return []string{
		ServingName(hub.Namespace, operatorv1.ServiceRegistrationWebhook), ServingName(hub.Namespace, operatorv1.ServiceWorkWebhook),
		ServingName(hub.Namespace, operatorv1.ServiceAddOnWebhook),
	}
}

// PlacementName returns the DNS name at which the debug endpoint of placements is served.
func PlacementName() string { return ServingName(hub.Namespace, operatorv1.ServicePlacement) }

// ProxyName returns the DNS name at which the API of managed clusters is served.
func ProxyName() string { return ServingName(hub.Namespace, operatorv1.ServiceProxy) }

// servingAliases returns the further names of the certificates: those of the Services of the
// split layout, so that a switch of the layout needs no other certificates, and which tools of
// Open Cluster Management use for the debug endpoint in both. hosts are those of a hub that runs on
// another cluster; a client may name none of them, and then gets the first certificate.
func servingAliases(hosts []string) map[string][]string {
	out := map[string][]string{}
	for _, service := range []string{operatorv1.ServiceRegistrationWebhook, operatorv1.ServiceWorkWebhook, operatorv1.ServiceAddOnWebhook} {
		out[ServingName(hub.Namespace, service)] = []string{ServingName(hub.ComponentNamespace, service)}
	}
	name := ServingName(hub.ComponentNamespace, operatorv1.ServicePlacement)
	out[PlacementName()] = []string{name, name + ".cluster.local"}
	first := ServingNames()[0]
	out[first] = append(out[first], hosts...)
	return out
}

// servingNames returns all DNS names that need a certificate with these features.
func servingNames(f Features) []string {
	names := ServingNames()
	if f.PlacementDebugServer {
		names = append(names, PlacementName())
	}
	if f.ClusterProxy {
		names = append(names, ProxyName())
	}
	return names
}

// tlsSecret returns a Secret in the component namespace that holds the pair.
func tlsSecret(owner, name string, p certs.Pair) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hub.ComponentNamespace, Name: name, Labels: inventory(owner)},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: p.Cert, corev1.TLSPrivateKeyKey: p.Key},
	}
}

// bundleMap returns the ConfigMap that holds the CA bundle.
func bundleMap(owner string, bundle []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hub.ComponentNamespace, Name: operatorv1.ConfigMapCABundle, Labels: inventory(owner)},
		Data:       map[string]string{operatorv1.ConfigMapKeyCABundle: string(bundle)},
	}
}

// certificates returns the applies that store the desired certificates: the authorities
// before the certificates that they sign.
func certificates(s State, f Features) []reconcile.Write {
	owner := s.ClusterManager.Name
	all := []reconcile.Object{tlsSecret(owner, operatorv1.SecretSigner, s.Certs.Signer), bundleMap(owner, s.Certs.Bundle)}
	secrets := servingSecrets()
	for _, name := range servingNames(f) {
		all = append(all, tlsSecret(owner, secrets[name], s.Certs.Leaves[name]))
	}
	var out []reconcile.Write
	for _, o := range all {
		if !s.Held[o.GetName()] {
			out = append(out, reconcile.Apply{Object: o, LiveVersion: s.Versions[o.GetName()]})
		}
	}
	return out
}

// unused returns the removals of Secrets whose certificates are no longer served.
func unused(s State, f Features) []reconcile.Write {
	var out []reconcile.Write
	for name, used := range map[string]bool{
		operatorv1.SecretPlacementDebugServingCert: f.PlacementDebugServer, operatorv1.SecretProxyServingCert: f.ClusterProxy,
	} {
		if !used && s.Versions[name] != "" {
			out = append(out, reconcile.Remove{Target: reconcile.Target{Resource: secretsResource, Namespace: hub.ComponentNamespace, Name: name}})
		}
	}
	return out
}
