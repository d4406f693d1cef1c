// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// ServiceAccount returns the name of the identity that the agent of a Klusterlet has on its own
// cluster.
func ServiceAccount(klusterlet string) string { return manifests.WorkAccount(klusterlet) }

// FormerRights returns the names that roles and bindings of the agent had in earlier
// releases. Other charts use these names too, so each overwrote the other's objects.
func FormerRights() []string { return manifests.FormerRights() }

// OptionalRights returns the names of the roles and bindings that the agent of a Klusterlet has only
// in some installations.
func OptionalRights(klusterlet string) []string { return manifests.OptionalRights(klusterlet) }

// Options are what differs between two installations of the agent.
type Options struct {
	// Image is the full reference of the ocm-agent image. Required.
	Image string
	// ImagePullPolicy defaults to IfNotPresent.
	ImagePullPolicy corev1.PullPolicy
	// Klusterlet is the name of the Klusterlet; empty means the default. A cluster with several
	// hubs has a Klusterlet for each, in a namespace of its own.
	Klusterlet string
	// ClusterName is the name under which the cluster joins. Required: a DNS
	// label of at most 63 characters.
	ClusterName string
	// Namespace is where the agent runs; empty means the default. It must
	// start with "open-cluster-management-" and have at most 57 characters.
	Namespace string
	// Mode of the Klusterlet; empty means one process on the cluster that it manages. In a hosted
	// mode Namespace is that of the managed cluster.
	Mode operatorv1.InstallMode
	// ManagedKubeconfig leads the operator of a hosted agent to the managed cluster, with the rights
	// of an administrator.
	ManagedKubeconfig []byte
	// BootstrapKubeconfig is the content of the bootstrap secret. Nil leaves the secret
	// out: it exists already, or others create it.
	BootstrapKubeconfig []byte
	// NarrowRights leaves out the binding to the built-in role admin and the verbs
	// escalate, bind and impersonate, so that works can only contain what the agent was
	// permitted by roles labelled open-cluster-management.io/aggregate-to-work. The
	// permission to impersonate ServiceAccounts then decides which of them may be executors
	// of works.
	NarrowRights bool
	// Spec holds further settings of the Klusterlet. Its cluster name,
	// namespace and mode are set from the fields above; its node placement,
	// priority class and resources also shape the Deployment.
	Spec operatorv1.KlusterletSpec
}

// Objects returns the objects of an agent in the order in which to apply them. Their
// content depends only on the options.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	if o.Image == "" || o.ClusterName == "" {
		return nil, errors.New("making the agent's objects: image and cluster name are required")
	}
	o.Klusterlet = cmp.Or(o.Klusterlet, operatorv1.DefaultKlusterletName)
	o.Namespace = cmp.Or(o.Namespace, operatorv1.NamespaceAgent)
	var out []*unstructured.Unstructured
	for _, step := range []func(Options) ([]*unstructured.Unstructured, error){
		namespaces, rights, definition, bootstrap, deployment, klusterlet,
	} {
		objects, err := step(o)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	for _, u := range out {
		label(u, o.Klusterlet)
	}
	return out, nil
}

// Served returns what an operator of Klusterlets needs to run an agent: its namespace with the
// Secrets, and the Klusterlet. The image and the rights are the operator's.
func Served(o Options) ([]*unstructured.Unstructured, error) {
	o.Namespace = cmp.Or(o.Namespace, operatorv1.NamespaceAgent)
	at := o
	if o.Mode.IsHosted() {
		at.Namespace = o.Klusterlet
	}
	out, err := namespaces(at)
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(u *unstructured.Unstructured) bool { return u.GetName() != at.Namespace })
	secrets, err := bootstrap(at)
	if err != nil {
		return nil, err
	}
	if len(o.ManagedKubeconfig) > 0 {
		u, err := secret(at.Namespace, operatorv1.SecretExternalManagedKubeconfig, o.ManagedKubeconfig)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, u)
	}
	declared, err := klusterlet(o)
	if err != nil {
		return nil, err
	}
	out = slices.Concat(out, secrets, declared)
	for _, u := range out {
		label(u, o.Klusterlet)
	}
	return out, nil
}

func namespaces(o Options) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Read("namespaces.yaml")
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		if u.GetName() == operatorv1.NamespaceAgent {
			u.SetName(o.Namespace)
			u.SetLabels(map[string]string{operatorv1.LabelKlusterlet: o.Klusterlet})
		}
	}
	return objects, nil
}

func rights(o Options) ([]*unstructured.Unstructured, error) {
	return manifests.Rights(manifests.Agent{Klusterlet: o.Klusterlet, Namespace: o.Namespace, Narrow: o.NarrowRights, Proxy: o.servesProxy()})
}

// servesProxy reports whether the agent opens a tunnel to the hub.
func (o Options) servesProxy() bool {
	c := o.Spec.RegistrationConfiguration
	return c != nil && slices.Contains(c.FeatureGates, operatorv1.FeatureGate{
		Feature: connectv1alpha1.GateClusterProxy, Mode: operatorv1.FeatureGateModeTypeEnable,
	})
}

func definition(Options) ([]*unstructured.Unstructured, error) {
	u, err := crd.Get(crd.Klusterlets)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of klusterlets: %w", err)
	}
	return []*unstructured.Unstructured{u}, nil
}

func bootstrap(o Options) ([]*unstructured.Unstructured, error) {
	if o.BootstrapKubeconfig == nil {
		return nil, nil
	}
	u, err := secret(o.Namespace, operatorv1.SecretBootstrapHubKubeconfig, o.BootstrapKubeconfig)
	return []*unstructured.Unstructured{u}, err
}

// secret returns a Secret with a kubeconfig.
func secret(namespace, name string, kubeconfig []byte) (*unstructured.Unstructured, error) {
	return typed.ToUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	})
}

func deployment(o Options) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Read("deployment.yaml")
	if err != nil {
		return nil, err
	}
	d, err := typed.FromUnstructured[appsv1.Deployment](objects[0])
	if err != nil {
		return nil, err
	}
	d.Namespace, d.Name = o.Namespace, operatorv1.AgentDeployment(o.Klusterlet)
	d.Spec.Template.Labels[operatorv1.LabelCreatedByKlusterlet] = o.Klusterlet
	pod := &d.Spec.Template.Spec
	pod.ServiceAccountName = ServiceAccount(o.Klusterlet)
	pod.Containers[0].Image = o.Image
	if o.Klusterlet != operatorv1.DefaultKlusterletName {
		pod.Containers[0].Args = append(pod.Containers[0].Args, "--klusterlet="+o.Klusterlet)
	}
	if o.ImagePullPolicy != "" {
		pod.Containers[0].ImagePullPolicy = o.ImagePullPolicy
	}
	pod.NodeSelector = o.Spec.NodePlacement.NodeSelector
	pod.Tolerations = o.Spec.NodePlacement.Tolerations
	pod.PriorityClassName = o.Spec.PriorityClassName
	if given, asked := o.Spec.ResourceRequirement.Given(); asked {
		pod.Containers[0].Resources = given
	}
	u, err := typed.ToUnstructured(d)
	if err != nil {
		return nil, err
	}
	// A Go type cannot leave these out, and the applier must not own a null.
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
	return []*unstructured.Unstructured{u}, nil
}

func klusterlet(o Options) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Read("klusterlet.yaml")
	if err != nil {
		return nil, err
	}
	k, err := typed.FromUnstructured[operatorv1.Klusterlet](objects[0])
	if err != nil {
		return nil, err
	}
	k.Name = o.Klusterlet
	mode := cmp.Or(o.Mode, k.Spec.DeployOption.Mode)
	o.Spec.DeepCopyInto(&k.Spec)
	k.Spec.DeployOption.Mode = mode
	k.Spec.ClusterName, k.Spec.Namespace = o.ClusterName, o.Namespace
	u, err := typed.ToUnstructured(k)
	return []*unstructured.Unstructured{u}, err
}

// label marks the object as part of a Klusterlet.
func label(u *unstructured.Unstructured, klusterlet string) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[operatorv1.LabelCreatedByKlusterlet] = klusterlet
	u.SetLabels(labels)
}
