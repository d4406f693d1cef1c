// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// folder is where the process finds its access to the hub.
const folder = "/var/run/secrets/hub"

// annotationKubeconfig on a pod holds the digest of its kubeconfig: the process reads the token
// again, but not the address.
const annotationKubeconfig = "operator.open-cluster-management.io/kubeconfig-hash"

// process returns the applies of what runs the hub: its Services and its Deployment.
func (s State) process() ([]reconcile.Write, error) {
	name, spec := s.ClusterManager.Name, s.ClusterManager.Spec
	services, d, err := servicesAndDeployment(hub.Options{
		Version: s.Version, Image: image.Chosen(spec.RegistrationImagePullSpec, s.Image), ImagePullPolicy: s.Pull,
	})
	if err != nil {
		return nil, err
	}
	if err := s.adapt(d); err != nil {
		return nil, fmt.Errorf("preparing the Deployment of the hub: %w", err)
	}
	var out []reconcile.Write
	for _, u := range append(services, d) {
		u.SetNamespace(name)
		labels := u.GetLabels()
		labels[operatorv1.LabelCreatedByClusterManager] = name
		u.SetLabels(labels)
		version := s.Here.Services[u.GetName()].Version
		if u == d && s.Here.Deployment != nil {
			version = s.Here.Deployment.Version
		}
		out = append(out, reconcile.Apply{Object: u, LiveVersion: version})
	}
	return out, nil
}

// adapt makes the Deployment of a hub one that runs the hub of another cluster.
func (s State) adapt(d *unstructured.Unstructured) error {
	template, _, err := unstructured.NestedMap(d.Object, "spec", "template")
	if err != nil {
		return err
	}
	about := fmt.Sprintf("%x", digest.OfBytes(s.Hub.Kubeconfig))
	if err := unstructured.SetNestedField(template, about, "metadata", "annotations", annotationKubeconfig); err != nil {
		return err
	}
	pod, _ := template["spec"].(map[string]any)
	delete(pod, "serviceAccountName")
	pod["automountServiceAccountToken"] = false
	placement, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.ClusterManager.Spec.NodePlacement)
	if err != nil {
		return err
	}
	for field, value := range placement {
		pod[field] = value
	}
	volumes, _ := pod["volumes"].([]any)
	pod["volumes"] = append(volumes, map[string]any{"name": "hub", "secret": map[string]any{"secretName": tokenSecret}})
	containers, _ := pod["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	args := []any{
		"run", "--hosted", "--kubeconfig=" + folder + "/" + clusterv1.SecretKeyKubeconfig,
		// The lease of the hub, for all to see there.
		"--namespace=" + hub.Namespace,
	}
	if s.KeepAPIs {
		args = append(args, hub.FlagKeepAPIs)
	}
	container["args"] = args
	mounts, _ := container["volumeMounts"].([]any)
	container["volumeMounts"] = append(mounts, map[string]any{"name": "hub", "mountPath": folder, "readOnly": true})
	if r := s.ClusterManager.Spec.ResourceRequirement; r != nil && r.Type != "" && r.Type != operatorv1.ResourceQosClassDefault {
		given := corev1.ResourceRequirements{}
		if r.Type == operatorv1.ResourceQosClassResourceRequirement && r.ResourceRequirements != nil {
			given = *r.ResourceRequirements
		}
		if container["resources"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&given); err != nil {
			return err
		}
	}
	return unstructured.SetNestedMap(d.Object, template, "spec", "template")
}
