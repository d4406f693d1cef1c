// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/template"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// customLife is the lifetime of certificates of custom signers.
const customLife = 24 * time.Hour

// maxWarnings is the most warnings about a template at a time.
const maxWarnings = 8

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// supported lists the configuration kinds of every template add-on.
var supported = []addonv1alpha1.ConfigGroupResource{
	{Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceDeploymentConfig},
	templates,
}

var templates = addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceTemplate}

// instance is the add-on on one cluster during one pass.
type instance struct {
	name     string
	template *addonv1alpha1.AddOnTemplate
	configs  []*addonv1alpha1.AddOnDeploymentConfig
	// contents identifies the template and configurations by their hashes, in order.
	contents []string

	// last, unless nil, is the instance with the contents that were last applied. It is used
	// when an instance that is being deleted can no longer be rendered.
	last *instance

	// rendered is true once result and err are known.
	rendered bool
	result   template.Result
	err      error
}

// Options returns the options of every template add-on.
func (n *instance) Options() addonkit.Options {
	return addonkit.Options{Name: n.name, Configs: supported, WaitConfigured: true}
}

// Inputs identifies everything that template.Render reads: contents by their hashes, and the
// fields of the instance and its slimmed cluster that rendering uses. See TestInputs.
func (n *instance) Inputs(i addonkit.Instance) (string, bool) {
	raw, err := json.Marshal([]any{
		n.contents, i.AddOn.Namespace, i.AddOn.Name, i.AddOn.Annotations[addonv1alpha1.AnnotationHostingClusterName],
		i.Cluster.Name, i.Cluster.Annotations[clusterv1.AnnotationImageRegistries],
	})
	return string(raw), err == nil
}

// render renders the template, once per pass.
func (n *instance) render(i addonkit.Instance) (template.Result, error) {
	if !n.rendered {
		n.rendered = true
		n.result, n.err = template.Render(template.Input{Template: n.template, AddOn: i.AddOn, Cluster: i.Cluster, Configs: n.configs})
		if n.err != nil && n.last != nil {
			if last, err := n.last.render(i); err == nil {
				n.result, n.err = last, nil
			}
		}
	}
	return n.result, n.err
}

// Manifests returns the manifests of the template for the cluster.
func (n *instance) Manifests(_ context.Context, i addonkit.Instance) ([]runtime.Object, error) {
	result, err := n.render(i)
	if err != nil {
		return nil, err
	}
	out := make([]runtime.Object, 0, len(result.Manifests))
	for _, m := range result.Manifests {
		out = append(out, m)
	}
	return out, nil
}

// ManifestConfigs returns the manifest configurations of the template.
func (n *instance) ManifestConfigs(i addonkit.Instance) []workv1.ManifestConfigOption {
	result, _ := n.render(i)
	return result.ManifestConfigs
}

// Health is determined by the workloads.
func (*instance) Health() addonkit.Health { return addonkit.Health{Mode: addonkit.HealthWorkloads} }

// Warnings returns probable mistakes in the template or configuration.
func (n *instance) Warnings(i addonkit.Instance) []string {
	result, _ := n.render(i)
	return result.Warnings[:min(len(result.Warnings), maxWarnings)]
}

// registered is an instance whose template requests credentials.
type registered struct {
	*instance
	client dynamic.Interface
	clock  clock.PassiveClock
}

// These interfaces are optional, so the compiler has to check the method names.
var _ interface {
	addonkit.Registrar
	addonkit.Permitter
	addonkit.Approver
	addonkit.Signer
	addonkit.Placed
	addonkit.Configured
	addonkit.Healthy
	addonkit.Warner
	addonkit.Traced
} = registered{}

// Registrations returns the credentials that the template requests.
func (r registered) Registrations(_ context.Context, i addonkit.Instance) ([]addonv1alpha1.RegistrationConfig, error) {
	result, err := r.render(i)
	if err != nil {
		return nil, err
	}
	var out []addonv1alpha1.RegistrationConfig
	for _, g := range result.Registrations {
		out = append(out, g.Config)
	}
	return out, nil
}

// Permissions returns bindings to existing roles, in the namespace of the cluster or in a
// given one.
func (r registered) Permissions(_ context.Context, i addonkit.Instance) ([]addonkit.Permission, error) {
	result, err := r.render(i)
	if err != nil {
		return nil, err
	}
	var out []addonkit.Permission
	for _, g := range result.Registrations {
		for _, p := range g.HubPermissions {
			if c := p.CurrentCluster; p.Type == addonv1alpha1.HubPermissionTypeCurrentCluster && c != nil {
				out = append(out, addonkit.Permission{Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: c.ClusterRoleName}})
			}
			if s := p.SingleNamespace; p.Type == addonv1alpha1.HubPermissionTypeSingleNamespace && s != nil {
				out = append(out, addonkit.Permission{Namespace: s.Namespace, Role: rbacv1.RoleRef{Kind: s.RoleRef.Kind, Name: s.RoleRef.Name}})
			}
		}
	}
	return out, nil
}

// InstallNamespace returns the namespace that the agent runs in.
func (r registered) InstallNamespace(_ context.Context, i addonkit.Instance) (string, error) {
	result, err := r.render(i)
	return result.Namespace, err
}

// Approve approves requests that match one of the registrations exactly.
func (r registered) Approve(ctx context.Context, i addonkit.Instance, csr *certificatesv1.CertificateSigningRequest) error {
	wanted, err := r.Registrations(ctx, i)
	if err != nil {
		return err
	}
	return registration.Check(csr, i, wanted)
}

// Sign signs the request with the authority that the template names.
func (r registered) Sign(ctx context.Context, i addonkit.Instance, csr *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	result, err := r.render(i)
	if err != nil {
		return nil, err
	}
	for _, g := range result.Registrations {
		if g.SigningCA == nil || g.Config.SignerName != csr.Spec.SignerName {
			continue
		}
		namespace := cmp.Or(g.SigningCA.Namespace, operatorv1.NamespaceHub)
		var authority registration.Authority
		secret, err := typed.Get[corev1.Secret](ctx, r.client, secrets, namespace, g.SigningCA.Name)
		if err == nil {
			authority, err = registration.ReadAuthority(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		}
		if err != nil {
			return nil, fmt.Errorf("reading the authority, Secret %s/%s: %w", namespace, g.SigningCA.Name, err)
		}
		return authority.Sign(csr, customLife, r.clock.Now())
	}
	return nil, errors.New("no registration of the template has its signer")
}

// broken is an add-on for which something does not exist: nothing of it changes, and its
// conditions report why.
type broken struct{ instance }

func newBroken(name string, why error) *broken {
	return &broken{instance{name: name, rendered: true, err: why}}
}

// Registrations returns why the add-on is broken.
func (b *broken) Registrations(context.Context, addonkit.Instance) ([]addonv1alpha1.RegistrationConfig, error) {
	return nil, b.err
}

// Inputs returns none, so that each pass runs: what is missing may appear.
func (*broken) Inputs(addonkit.Instance) (string, bool) { return "", false }

// named returns the metadata of an object that was read from its content.
func named(at addonv1alpha1.ConfigReferent) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}
}
