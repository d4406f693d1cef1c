// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// DefaultHookDeadline is how long the deletion of an add-on waits for its hooks.
const DefaultHookDeadline = 30 * time.Minute

// RetryDelay is how soon an add-on that returned an error is called again if nothing
// happens before: the cause may be outside the cluster.
const RetryDelay = 30 * time.Second

// maxName bounds the name of an add-on, because it is a label value on what belongs to it.
const maxName = 63

// ErrSubjectNotReady says that the subject of permissions is not known yet. Condition
// RegistrationApplied then has reason PermissionConfigPending, which is not a failure.
var ErrSubjectNotReady = errors.New("the identity of the agent is not known yet")

// Instance is one add-on on one cluster. What it points to belongs to a cache and must not
// be changed.
type Instance struct {
	Cluster *clusterv1.ManagedCluster
	AddOn   *addonv1alpha1.ManagedClusterAddOn
	// Of is the ClusterManagementAddOn, reduced to what it says of configurations; nil if
	// there is none. See Given.
	Of *addonv1alpha1.ClusterManagementAddOn
}

// AddOn is an add-on of any kind. Its methods may be called for several clusters at a time.
type AddOn interface {
	// Options returns the same at every call.
	Options() Options
	// Manifests returns the objects on the managed cluster and, in hosted mode, on the
	// hosting one: complete, with apiVersion and kind. The same instance and configuration
	// must give the same result. An error leaves what is deployed as it is and appears in
	// condition ManifestApplied.
	Manifests(ctx context.Context, i Instance) ([]runtime.Object, error)
}

// Options of an add-on.
type Options struct {
	// Name is that of the ClusterManagementAddOn and of each ManagedClusterAddOn.
	Name string
	// Configs are the kinds of configuration that it reads. A kind that is not listed gets
	// no hash, and its rollout never ends.
	Configs []addonv1alpha1.ConfigGroupResource
	// Hashed are those of Configs that the hub does not read, with the version to read them
	// at: all but AddOnDeploymentConfig and AddOnTemplate. The runner reports the hashes of
	// their objects to the hub, without which a rollout of them never ends; its account
	// lists and watches them, and patches the status of ClusterManagementAddOns.
	Hashed []schema.GroupVersionResource
	// WaitConfigured delays deployment until the hub has said which configurations count.
	// Without it a cluster may see the defaults of the add-on first.
	WaitConfigured bool
	// HookDeadline is how long a deletion waits for hooks; 0 means DefaultHookDeadline, a
	// negative value forever. A longer one lets slow hooks complete; a shorter one frees
	// the name sooner if the cluster is gone. Users override it with an annotation.
	HookDeadline time.Duration
}

// Owner returns the owner reference by which objects of an instance are deleted with it.
func Owner(addOn *addonv1alpha1.ManagedClusterAddOn) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: addOn.Name, UID: addOn.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// Check returns what is wrong with the options, with the field.
func (o Options) Check() error {
	switch errs := validation.IsDNS1123Subdomain(o.Name); {
	case o.Name == "":
		return errors.New("name: must be set; use the name of the ClusterManagementAddOn")
	case len(errs) > 0:
		return fmt.Errorf("name %q: %s", o.Name, errs[0])
	case len(o.Name) > maxName:
		return fmt.Errorf("name %q: has %d characters; use at most %d", o.Name, len(o.Name), maxName)
	}
	for i, c := range o.Configs {
		if c.Resource == "" {
			return fmt.Errorf("configs[%d].resource: must be set; use the plural of the kind", i)
		}
	}
	return o.checkHashed()
}

// checkHashed returns what is wrong with the kinds that the runner reads.
func (o Options) checkHashed() error {
	for i, kind := range o.Hashed {
		named := addonv1alpha1.ConfigGroupResource{Group: kind.Group, Resource: kind.Resource}
		switch {
		case !slices.Contains(o.Configs, named):
			return fmt.Errorf("hashed[%d]: %s is not one of configs; name it there, too", i, kind.GroupResource())
		case kind.Version == "":
			return fmt.Errorf("hashed[%d].version: must be set; use the version that %s is read at", i, kind.GroupResource())
		case kind.Group == addonv1alpha1.GroupName:
			return fmt.Errorf("hashed[%d]: %s is read by the hub; leave it out", i, kind.GroupResource())
		case slices.Contains(o.Hashed[:i], kind):
			return fmt.Errorf("hashed[%d]: %s is already named; leave it out", i, kind.GroupResource())
		}
	}
	return nil
}

// Registrar is an add-on whose agent needs access to the hub, or certificates.
type Registrar interface {
	// Registrations returns who the agent is; signer KubeAPIServerSigner gives access to
	// the API server of the hub.
	Registrations(ctx context.Context, i Instance) ([]addonv1alpha1.RegistrationConfig, error)
}

// Permission is something that the agent of an add-on on one cluster may do on the hub.
type Permission struct {
	// Namespace in which it holds; empty means that of the cluster.
	Namespace string
	// Role is an existing Role or ClusterRole; its group may be left out. If it has no
	// name, Rules count.
	Role rbacv1.RoleRef
	// Rules become a role of this add-on for this cluster.
	Rules []rbacv1.PolicyRule
}

// Permitter is an add-on whose agent may do something on the hub.
type Permitter interface {
	// Permissions returns what to bind to the agent of this cluster; the bindings are
	// removed with the instance. An error appears in condition RegistrationApplied, except
	// for ErrSubjectNotReady.
	Permissions(ctx context.Context, i Instance) ([]Permission, error)
}

// Approver answers the certificate requests of an add-on. Without it a person has to.
type Approver interface {
	// Approve returns nil if the request may be approved, or why it may not; such a request
	// is left to a person.
	Approve(ctx context.Context, i Instance, csr *certificatesv1.CertificateSigningRequest) error
}

// Signer signs for signers other than KubeAPIServerSigner.
type Signer interface {
	// Sign returns the PEM certificate for an approved request.
	Sign(ctx context.Context, i Instance, csr *certificatesv1.CertificateSigningRequest) ([]byte, error)
}

// Healthy is an add-on whose health is not reported by its lease.
type Healthy interface {
	Health() Health
}

// Placed is an add-on that chooses the namespace of its agent. It must be the namespace of
// the manifests: credentials are put there.
type Placed interface {
	// InstallNamespace returns the namespace; "" leaves it to the instance.
	InstallNamespace(ctx context.Context, i Instance) (string, error)
}

// Hosted is an add-on whose agent can run on another cluster.
type Hosted interface {
	// HostingCluster returns the cluster that the agent of the instance runs on; false
	// means the managed cluster itself.
	HostingCluster(i Instance) (string, bool)
}

// HostedByAnnotation implements Hosted with the annotation that users set, for add-ons to
// embed.
type HostedByAnnotation struct{}

// HostingCluster returns what the annotation names.
func (HostedByAnnotation) HostingCluster(i Instance) (string, bool) {
	name, ok := i.AddOn.Annotations[addonv1alpha1.AnnotationHostingClusterName]
	return name, ok
}

// Configured is an add-on that refines how its manifests are applied.
type Configured interface {
	ManifestConfigs(i Instance) []workv1.ManifestConfigOption
}

// Warner is an add-on that warns about probable mistakes in what it deploys: with an Event
// about the instance, once per content.
type Warner interface {
	Warnings(i Instance) []string
}

// Traced is an add-on that knows what its answers depend on, so that it is not called again
// whenever the status of an instance changes.
type Traced interface {
	// Inputs identifies everything that Manifests, ManifestConfigs, Warnings,
	// Registrations, Permissions and InstallNamespace read of the instance, its cluster,
	// configurations and anything else: while it is the same, so are the answers, and none
	// of these methods is called. A change of an input that it leaves out goes unnoticed,
	// even when the instance is reconciled again. If it returns false, the methods are
	// called as without Inputs.
	Inputs(i Instance) (string, bool)
}
