// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Names of what is installed.
const (
	// Namespace holds the hub process, its Services and the bootstrap identity.
	Namespace = "open-cluster-management"
	// ComponentNamespace holds the certificates of the hub.
	ComponentNamespace = "open-cluster-management-hub"
	// Name is the name of the Deployment, of its ServiceAccount, roles and bindings, and of
	// the ClusterManager.
	Name = "cluster-manager"
	// TokenDriverRole has the permissions that the process needs for add-ons whose agents
	// use tokens. It is not bound unless an administrator does so.
	TokenDriverRole = "cluster-manager-token-driver"
	// AllowTokenDriver is the command with which an administrator binds that role.
	AllowTokenDriver = "kubectl create clusterrolebinding " + TokenDriverRole + " --clusterrole=" + TokenDriverRole +
		" --serviceaccount=" + ComponentNamespace + ":" + AddOnManager
	// AddOnManager is the ServiceAccount in ComponentNamespace that the process
	// impersonates to grant permissions to agents of add-ons; AddOnManagerUser is its user
	// name. Charts of add-ons bind their own roles to it.
	AddOnManager     = "addon-manager-controller-sa"
	AddOnManagerUser = "system:serviceaccount:" + ComponentNamespace + ":" + AddOnManager
	// AddOnAgentsBinding is the ClusterRoleBinding of its further permissions; it has no
	// subjects if the add-on manager's rights are narrow.
	AddOnAgentsBinding = "open-cluster-management:cluster-manager-addon-manager:agents"
	// ComponentsRole has the permissions of the process in ComponentNamespace, and is also
	// the name of their RoleBinding there.
	ComponentsRole = "cluster-manager-components"
	// RestoreBinding is the ClusterRoleBinding of the permission to bind them again after
	// ComponentNamespace was deleted; it has no subjects if the add-on manager's rights are
	// narrow.
	RestoreBinding = "cluster-manager-restore"
	// ImporterRole has the permissions that the process needs to import clusters of Cluster
	// API, and is also the name of its ClusterRoleBinding, which has no subjects unless the
	// gate ClusterImporter is on.
	ImporterRole = "cluster-manager-importer"
	// AllowImporter is the command with which an administrator adds the subjects: the accounts
	// that import in either layout.
	AllowImporter = "kubectl set subject clusterrolebinding " + ImporterRole + " --serviceaccount=" + Namespace + ":" + Name +
		" --serviceaccount=" + ComponentNamespace + ":" + RegistrationAccount
	// CredentialsRole has the permissions on Secrets that the add-on manager needs to copy tokens
	// of ManagedServiceAccounts beside ClusterProfiles, and is also the name of its
	// ClusterRoleBinding, which has no subjects unless both gates are on.
	CredentialsRole = "cluster-manager-credentials"
	// AllowCredentials is the command with which an administrator adds the subject.
	AllowCredentials = "kubectl set subject clusterrolebinding " + CredentialsRole + " --serviceaccount=" + ComponentNamespace + ":" + AddOnManager
	// HostingRole has the permissions that the process needs to run the hub of another cluster in a
	// namespace. It is not bound unless an administrator does so there.
	HostingRole = "cluster-manager-hosting"
	// BootstrapServiceAccount is the identity in Namespace with which new clusters
	// register.
	BootstrapServiceAccount = "agent-registration-bootstrap"
	// RegistrationService, WorkService and AddonService are the names under which the API
	// server reaches the webhooks.
	RegistrationService = "cluster-manager-registration-webhook"
	WorkService         = "cluster-manager-work-webhook"
	AddonService        = "cluster-manager-addon-webhook"
	// WebhookPort is the port of those Services and of the process.
	WebhookPort = 9443
	// PlacementService leads to the debug endpoint of placement, on its port WebhookPort.
	PlacementService = "cluster-manager-placement"
	// ProxyService leads to the API of managed clusters, on its port WebhookPort.
	ProxyService = "cluster-manager-proxy"
	// AdmissionClients is the ConfigMap in ComponentNamespace in which an administrator can
	// put, under the key ca-bundle.crt, the authorities of the API servers that may call
	// admission. It is not part of the installation.
	AdmissionClients = "admission-clients"
	// repository is the repository of the hub process's image.
	repository = "ghcr.io/kubectl-ocm/ocm-hub"
	// inventoryLabel is on every object here, with the value Name. Removal uses it.
	inventoryLabel = "open-cluster-management.io/created-by-clustermanager"
	// CRD is the only API that the installer applies itself.
	CRD = "clustermanagers.operator.open-cluster-management.io"
)

// versionAnnotation on a CustomResourceDefinition and on the Deployment holds the release
// that wrote it.
const versionAnnotation = "operator.open-cluster-management.io/version"

// Options say what differs between installations.
type Options struct {
	// Image of the hub process; empty means Repository with the tag Version.
	Image string
	// Version is the release, for example v0.1.0. It must not be empty when
	// Image is.
	Version string
	// ImagePullPolicy of the container; empty leaves the default of Kubernetes.
	ImagePullPolicy string
	// Replicas is the number of hub processes, at least 1; 0 means 1. Further ones are hot
	// standbys that serve admission.
	Replicas int32
	// NarrowAddOnRights leaves the add-on manager only what it needs itself. Agents of
	// templates then get only what an administrator has granted it, and add-ons get no
	// tokens and no certificates of other signers. Otherwise it has the permissions that
	// existing charts rely on.
	NarrowAddOnRights bool
	// Importer gives the process the permissions to import clusters of Cluster API.
	Importer bool
	// Credentials gives the add-on manager the permissions to copy tokens beside ClusterProfiles.
	Credentials bool
	// Layout is LayoutCompact or LayoutSplit; empty means LayoutCompact.
	Layout string
	// KeepAPIs leaves the APIs and all objects of users in place when the hub is removed.
	KeepAPIs bool
	// Placement and Resources are those of the pods; empty and nil leave the recommended ones. They
	// are for the compact layout: an operator gives them to the components.
	Placement operatorv1.NodePlacement
	Resources *operatorv1.ResourceRequirement
	// Hosted leaves out what runs the hub and leads to it: that is on another cluster.
	Hosted bool
}

// Layouts of a hub: one process, or an operator that runs a Deployment for each part.
const (
	LayoutCompact = "compact"
	LayoutSplit   = "split"
)

// AllowHosting returns the command with which an administrator binds HostingRole in a namespace.
func AllowHosting(namespace string) string {
	return "kubectl create rolebinding " + HostingRole + " -n " + namespace + " --clusterrole=" + HostingRole + " --serviceaccount=" + Namespace + ":" + Name
}

//go:embed manifests
var manifests embed.FS

// order is the order in which the files are applied; the clustermanagers API comes before
// the Services. The operator's is for the split layout.
var order = []string{"namespaces", "rbac", "operator", "bootstrap", "services", "deployment", "clustermanager"}

// Objects returns all objects, in the order in which to apply them. The API of the last,
// the ClusterManager, must be established before it can be applied. Every object carries
// inventoryLabel.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, file := range order {
		if file == "operator" && o.Layout != LayoutSplit {
			continue
		}
		if file == "services" {
			definition, err := crd.Get(CRD)
			if err != nil {
				return nil, fmt.Errorf("reading the definition of clustermanagers: %w", err)
			}
			out = append(out, definition)
		}
		objects, err := read("manifests/" + file + ".yaml")
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	if o.Layout == LayoutSplit {
		out = slices.DeleteFunc(out, isOfCompact)
	}
	if o.Hosted {
		out = slices.DeleteFunc(out, isOfPods)
	}
	for _, u := range out {
		if err := o.adapt(u); err != nil {
			return nil, fmt.Errorf("preparing %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return out, nil
}

// isOfPods reports whether an object belongs beside the pods of the hub.
func isOfPods(u *unstructured.Unstructured) bool {
	return slices.Contains([]string{"Deployment", "Service", "NetworkPolicy"}, u.GetKind())
}

// Bootstrap returns what lets a cluster ask to join: the identity of its token, and the
// permissions of that identity. Objects includes them.
func Bootstrap() ([]*unstructured.Unstructured, error) {
	out, err := read("manifests/bootstrap.yaml")
	for _, u := range out {
		setLabel(u, inventoryLabel, Name)
	}
	return out, err
}

// ImageOf returns the image of a release.
func ImageOf(version string) string { return repository + ":" + version }

func (o *Options) complete() error {
	if o.Image == "" && o.Version == "" {
		return errors.New("preparing the hub: neither image nor version is given")
	}
	if o.Image == "" {
		o.Image = ImageOf(o.Version)
	}
	if o.Replicas < 0 {
		return fmt.Errorf("preparing the hub: %d replicas: at least 1 is needed", o.Replicas)
	}
	o.Replicas = max(o.Replicas, 1)
	return nil
}

// adapt changes one object according to the options.
func (o *Options) adapt(u *unstructured.Unstructured) error {
	setLabel(u, inventoryLabel, Name)
	switch u.GetKind() {
	case "ClusterRoleBinding":
		if o.NarrowAddOnRights && (u.GetName() == AddOnAgentsBinding || u.GetName() == RestoreBinding) {
			u.Object["subjects"] = []any{} // explicitly empty, so that earlier subjects are removed
		}
		if o.Importer && u.GetName() == ImporterRole {
			u.Object["subjects"] = []any{
				map[string]any{"kind": "ServiceAccount", "name": Name, "namespace": Namespace},
				map[string]any{"kind": "ServiceAccount", "name": RegistrationAccount, "namespace": ComponentNamespace},
			}
		}
		if o.Credentials && u.GetName() == CredentialsRole {
			u.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": AddOnManager, "namespace": ComponentNamespace}}
		}
	case "CustomResourceDefinition":
		o.stamp(u)
	case "Deployment":
		o.stamp(u)
		return o.adaptDeployment(u)
	}
	return nil
}

func (o *Options) stamp(u *unstructured.Unstructured) {
	if o.Version == "" {
		return
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[versionAnnotation] = strings.TrimPrefix(o.Version, "v")
	u.SetAnnotations(annotations)
}

func (o *Options) adaptDeployment(u *unstructured.Unstructured) error {
	if err := unstructured.SetNestedField(u.Object, int64(o.Replicas), "spec", "replicas"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(u.Object, Name, "spec", "template", "metadata", "labels", inventoryLabel); err != nil {
		return err
	}
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return errors.New("its container is not an object")
	}
	if err := o.chooseLayout(container); err != nil {
		return err
	}
	container["image"] = o.Image
	if o.ImagePullPolicy != "" {
		container["imagePullPolicy"] = o.ImagePullPolicy
	}
	if o.Layout != LayoutSplit {
		if err := o.place(u, container); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
}

// place sets where the pods run and what their container requests.
func (o *Options) place(u *unstructured.Unstructured, container map[string]any) error {
	placement, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&o.Placement)
	if err != nil {
		return fmt.Errorf("encoding the node placement: %w", err)
	}
	for field, value := range placement {
		if err := unstructured.SetNestedField(u.Object, value, "spec", "template", "spec", field); err != nil {
			return err
		}
	}
	given, asked := o.Resources.Given()
	if !asked {
		return nil
	}
	if container["resources"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&given); err != nil {
		return fmt.Errorf("encoding the resources: %w", err)
	}
	return nil
}

func setLabel(u *unstructured.Unstructured, key, value string) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	u.SetLabels(labels)
}

// read decodes the documents of one embedded file.
func read(path string) ([]*unstructured.Unstructured, error) {
	file, err := manifests.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(u)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		out = append(out, u)
	}
}
