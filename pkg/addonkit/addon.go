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

// RetryDelay is how soon an add-on that failed to answer is asked again, if nothing
// happens before: what it failed at may be elsewhere.
const RetryDelay = 30 * time.Second

// maxName bounds the name of an add-on, because what belongs to it bears the name as
// a label.
const maxName = 63

// ErrSubjectNotReady tells that it is not known yet whom rights are for: condition
// RegistrationApplied is PermissionConfigPending, and no failure.
var ErrSubjectNotReady = errors.New("it is not known yet who the agent is")

// Instance is one add-on on one cluster. What it points to belongs to a cache and
// must not be changed.
type Instance struct {
	Cluster *clusterv1.ManagedCluster
	AddOn   *addonv1alpha1.ManagedClusterAddOn
	// Of has what the ClusterManagementAddOn of the name says of configurations; nil when
	// there is none. See Given.
	Of *addonv1alpha1.ClusterManagementAddOn
}

// AddOn is an add-on of any kind. Its methods may be called for several clusters at
// a time.
type AddOn interface {
	// Options are the same at every call.
	Options() Options
	// Manifests are the objects on the managed cluster and, in hosted mode, on the
	// hosting one: whole, with apiVersion and kind. The same answer must follow from
	// the same instance and configuration; an error leaves what is deployed as it is
	// and is told in condition ManifestApplied.
	Manifests(ctx context.Context, i Instance) ([]runtime.Object, error)
}

// Options of an add-on.
type Options struct {
	// Name is that of the ClusterManagementAddOn and of each ManagedClusterAddOn.
	Name string
	// Configs are the kinds of configuration that it reads. One that is not listed
	// gets no hash, and a rollout of it never ends.
	Configs []addonv1alpha1.ConfigGroupResource
	// Hashed are those of Configs that the hub does not read, with the version to read
	// them at: all but AddOnDeploymentConfig and AddOnTemplate. The runner tells the hub
	// what their objects say, without which a rollout of them never ends; its account
	// lists and watches them, and patches the status of ClusterManagementAddOns.
	Hashed []schema.GroupVersionResource
	// WaitConfigured deploys nothing before the hub has said which configurations
	// count. Without it a cluster may see the defaults of the add-on first.
	WaitConfigured bool
	// HookDeadline is how long a deletion waits for hooks; 0 is DefaultHookDeadline,
	// less than 0 for ever. A longer one lets slow hooks end, a shorter one gives the
	// name free sooner where the cluster is gone. Users override it by an annotation.
	HookDeadline time.Duration
}

// Owner is the reference by which what belongs to an instance goes with it.
func Owner(addOn *addonv1alpha1.ManagedClusterAddOn) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: addOn.Name, UID: addOn.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// Check tells what is wrong with the options, with the field.
func (o Options) Check() error {
	if o.Name == "" {
		return errors.New("name: must be set; use the name of the ClusterManagementAddOn")
	}
	if errs := validation.IsDNS1123Subdomain(o.Name); len(errs) > 0 {
		return fmt.Errorf("name %q: %s", o.Name, errs[0])
	}
	if len(o.Name) > maxName {
		return fmt.Errorf("name %q: has %d characters; use at most %d", o.Name, len(o.Name), maxName)
	}
	for i, c := range o.Configs {
		if c.Resource == "" {
			return fmt.Errorf("configs[%d].resource: must be set; use the plural of the kind", i)
		}
	}
	return o.checkHashed()
}

// checkHashed tells what is wrong with the kinds that the runner reads.
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
			return fmt.Errorf("hashed[%d]: %s is named before; leave it out", i, kind.GroupResource())
		}
	}
	return nil
}

// Registrar is an add-on whose agent needs access to the hub, or certificates.
type Registrar interface {
	// Registrations are who the agent is; signer KubeAPIServerSigner is access to the
	// API server of the hub.
	Registrations(ctx context.Context, i Instance) ([]addonv1alpha1.RegistrationConfig, error)
}

// Permission is what the agent of an add-on on one cluster may do on the hub.
type Permission struct {
	// Namespace that it holds in; empty is that of the cluster.
	Namespace string
	// Role is one that exists, of kind Role or ClusterRole; its group may be left out.
	// Without a name, Rules count.
	Role rbacv1.RoleRef
	// Rules become a role of this add-on for this cluster.
	Rules []rbacv1.PolicyRule
}

// Permitter is an add-on whose agent may do something on the hub.
type Permitter interface {
	// Permissions are bound to who the agent is on this cluster, and go with it. An
	// error is told in condition RegistrationApplied; ErrSubjectNotReady is none.
	Permissions(ctx context.Context, i Instance) ([]Permission, error)
}

// Approver answers the certificate requests of an add-on. Without it a person does.
type Approver interface {
	// Approve tells whether the request may be approved, or why it may not; a request
	// that may not be is left to a person.
	Approve(ctx context.Context, i Instance, csr *certificatesv1.CertificateSigningRequest) error
}

// Signer signs for signers other than KubeAPIServerSigner.
type Signer interface {
	// Sign returns the certificate in PEM for a request that is approved.
	Sign(ctx context.Context, i Instance, csr *certificatesv1.CertificateSigningRequest) ([]byte, error)
}

// Healthy is an add-on whose health is told by something else than its lease.
type Healthy interface {
	Health() Health
}

// Placed is an add-on that says which namespace its agent runs in. It must be that
// of the manifests: credentials are put there.
type Placed interface {
	// InstallNamespace is the namespace; empty leaves it to the instance.
	InstallNamespace(ctx context.Context, i Instance) (string, error)
}

// Hosted is an add-on whose agent can run on another cluster.
type Hosted interface {
	// HostingCluster is the cluster that the agent of the instance runs on; false is
	// the managed cluster itself.
	HostingCluster(i Instance) (string, bool)
}

// HostedByAnnotation is Hosted by the annotation that users set, for add-ons to
// embed.
type HostedByAnnotation struct{}

// HostingCluster is what the annotation names.
func (HostedByAnnotation) HostingCluster(i Instance) (string, bool) {
	name, ok := i.AddOn.Annotations[addonv1alpha1.AnnotationHostingClusterName]
	return name, ok
}

// Configured is an add-on that refines how its manifests are applied.
type Configured interface {
	ManifestConfigs(i Instance) []workv1.ManifestConfigOption
}

// Warner is an add-on that tells of what is probably not meant so, though it is
// deployed: by an Event about the instance, once for each content.
type Warner interface {
	Warnings(i Instance) []string
}

// Traced is an add-on that can tell what its answers follow from, so that it is not asked
// again whenever the status of an instance changes.
type Traced interface {
	// Inputs name all that Manifests, ManifestConfigs, Warnings, Registrations,
	// Permissions and InstallNamespace read of the instance, its cluster, configurations
	// and whatever else: as long as they are the same, so are the answers, and none of
	// these methods is called. What is left out of them is missed, also when somebody
	// looks at the instance again. False has the add-on asked, as without this method.
	Inputs(i Instance) (string, bool)
}
