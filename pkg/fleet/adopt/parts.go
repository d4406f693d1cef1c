// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	config "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
)

// role is what a part of the other hub does, which decides when it ends.
type role int

const (
	// passive parts only serve others; they are removed last.
	passive role = iota
	// deciding parts write the same objects as our loops.
	deciding
	// admitting parts answer admission and conversion until ours does.
	admitting
)

// part is an object that the other operator made for its hub and that ours does without.
type part struct {
	object *unstructured.Unstructured
	role   role
}

const (
	manager = operatorv1.DefaultClusterManagerName
	// prefix is that of the names of roles that the other operator grants.
	prefix = "open-cluster-management:" + manager + "-"
	// operatorLock is the lease of the operators, the other one's and ours.
	operatorLock = "clustermanager-lock"
)

var (
	appsKind  = schema.GroupVersion{Group: "apps", Version: "v1"}
	coreKind  = schema.GroupVersion{Version: "v1"}
	rbacKind  = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	hookKind  = schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	crdKind   = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
	leaseKind = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
)

// otherParts returns what the other operator makes and ours does without, in the order of their
// removal. The names are those of the API's contract; nothing is found by a prefix or a label.
func otherParts() []part {
	var out []part
	add := func(r role, gvk schema.GroupVersionKind, namespace string, names ...string) {
		for _, name := range names {
			out = append(out, part{fleet.Named(gvk, namespace, name), r})
		}
	}
	const ns = operatorv1.NamespaceHub
	add(deciding, appsKind.WithKind("Deployment"), ns,
		manager+"-registration-controller", manager+"-placement-controller", manager+"-addon-manager-controller", manager+"-work-controller")
	add(admitting, appsKind.WithKind("Deployment"), ns, manager+"-registration-webhook", manager+"-work-webhook", manager+"-addon-webhook")
	add(passive, coreKind.WithKind("Service"), ns, config.RegistrationService, config.WorkService, config.AddonService)
	for _, name := range []string{
		"registration:controller", "registration:webhook", "work:webhook", "placement:controller", "work:controller", "addon-manager-work-executor:controller",
	} {
		add(passive, rbacKind.WithKind("ClusterRoleBinding"), "", prefix+name)
		if name != "addon-manager-work-executor:controller" { // it binds a role that stays
			add(passive, rbacKind.WithKind("ClusterRole"), "", prefix+name)
		}
	}
	add(passive, coreKind.WithKind("ServiceAccount"), ns,
		"registration-controller-sa", "registration-webhook-sa", "work-webhook-sa", "placement-controller-sa", "work-controller-sa", "addon-webhook-sa")
	return out
}

// otherLocks are the leases of the other controllers. Nobody can hold them once these have
// ended, and they would delay the way back by their whole duration.
var otherLocks = []string{"registration-controller-lock", "placement-lock", "work-manager-lock", "manager-lock"}

// kept are objects of the other installation that stay as they are: users may have bound the
// role, and the Secrets hold what our process goes on with.
func kept() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		fleet.Named(rbacKind.WithKind("ClusterRole"), "", prefix+"work-executor-admin:webhook"),
		fleet.Named(coreKind.WithKind("Secret"), operatorv1.NamespaceHub, operatorv1.SecretSigner),
		fleet.Named(coreKind.WithKind("ConfigMap"), operatorv1.NamespaceHub, operatorv1.ConfigMapCABundle),
		fleet.Named(coreKind.WithKind("Secret"), operatorv1.NamespaceOperator, "open-cluster-management-image-pull-credentials"),
	}
}

// processParts returns what our process makes itself, besides what the installer applies.
func processParts() ([]*unstructured.Unstructured, error) {
	kinds, err := crd.Hub()
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, k := range kinds {
		out = append(out, fleet.Named(crdKind.WithKind("CustomResourceDefinition"), "", k.GetName()))
	}
	validating, mutating := teardown.HubAdmission()
	for _, name := range mutating {
		out = append(out, fleet.Named(hookKind.WithKind("MutatingWebhookConfiguration"), "", name))
	}
	for _, name := range validating {
		out = append(out, fleet.Named(hookKind.WithKind("ValidatingWebhookConfiguration"), "", name))
	}
	for _, name := range []string{
		operatorv1.SecretRegistrationWebhookServingCert, operatorv1.SecretWorkWebhookServingCert, operatorv1.SecretAddOnWebhookServingCert,
	} {
		out = append(out, fleet.Named(coreKind.WithKind("Secret"), operatorv1.NamespaceHub, name))
	}
	return out, nil
}
