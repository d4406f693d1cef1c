// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// process is one process of an agent, which a Deployment runs.
type process struct {
	// suffix is the Deployment's name without that of the Klusterlet.
	suffix string
	// app is the label of the pods, container the name of the container, command the first
	// argument.
	app, container, command string
	// registration and work are what it does.
	registration, work bool
}

var (
	registrationProcess = process{
		suffix: "-registration-agent", app: "klusterlet-registration-agent", container: "registration-controller",
		command: "registration", registration: true,
	}
	workProcess = process{
		suffix: "-work-agent", app: "klusterlet-manifestwork-agent", container: "klusterlet-manifestwork-agent", command: "work", work: true,
	}
	wholeProcess = process{
		suffix: "-agent", app: "klusterlet-agent", container: "klusterlet-agent", command: "agent", registration: true, work: true,
	}
	allProcesses = []process{registrationProcess, workProcess, wholeProcess}
)

// account returns the ServiceAccount of the process.
func (p process) account(klusterlet string) string {
	if p == registrationProcess {
		return manifests.RegistrationAccount(klusterlet)
	}
	return manifests.WorkAccount(klusterlet)
}

// image returns the image of the process; own is that of this program.
func (p process) image(k *operatorv1.Klusterlet, own string) string {
	return image.Chosen(map[process]string{
		registrationProcess: k.Spec.RegistrationImagePullSpec, workProcess: k.Spec.WorkImagePullSpec, wholeProcess: k.Spec.ImagePullSpec,
	}[p], own)
}

// deploymentOptions say what a Deployment depends on besides the Klusterlet.
type deploymentOptions struct {
	namespace, image, pullSecret, cluster string
	replicas                              int64
}

// deployment returns the Deployment that runs a process, with the hash of its spec.
func deployment(p process, k *operatorv1.Klusterlet, asked settings.Asked, o deploymentOptions) (*unstructured.Unstructured, string, error) {
	objects, err := manifests.Read("deployment.yaml")
	if err != nil {
		return nil, "", err
	}
	u := objects[0]
	u.SetNamespace(o.namespace)
	u.SetName(k.Name + p.suffix)
	u.SetLabels(map[string]string{"app": p.app, operatorv1.LabelCreatedByKlusterlet: k.Name})
	spec, _ := u.Object["spec"].(map[string]any)
	spec["replicas"] = o.replicas
	spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": p.app}}
	template, _ := spec["template"].(map[string]any)
	metadata, _ := template["metadata"].(map[string]any)
	metadata["labels"] = map[string]any{"app": p.app, operatorv1.LabelCreatedByKlusterlet: k.Name}
	pod, _ := template["spec"].(map[string]any)
	if err := fillPod(pod, p, k, asked, o); err != nil {
		return nil, "", err
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the spec of deployment %s: %w", u.GetName(), err)
	}
	sum := sha256.Sum256(raw)
	hash := hex.EncodeToString(sum[:])
	u.SetAnnotations(map[string]string{operatorv1.AnnotationSpecHash: hash})
	return u, hash, nil
}

func fillPod(pod map[string]any, p process, k *operatorv1.Klusterlet, asked settings.Asked, o deploymentOptions) error {
	pod["serviceAccountName"] = p.account(k.Name)
	if o.pullSecret != "" {
		pod["imagePullSecrets"] = []any{map[string]any{"name": o.pullSecret}}
	}
	if alias := k.Spec.HubAPIServerHostAlias; alias != nil {
		pod["hostAliases"] = []any{map[string]any{"ip": alias.IP, "hostnames": []any{alias.Hostname}}}
	}
	if k.Spec.PriorityClassName != "" {
		pod["priorityClassName"] = k.Spec.PriorityClassName
	}
	containers, _ := pod["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	container["name"], container["image"] = p.container, o.image
	container["args"] = arguments(p, k, asked, o.cluster)
	mount(pod, container, p)
	if err := setResources(container, k.Spec.ResourceRequirement); err != nil {
		return err
	}
	placement, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&k.Spec.NodePlacement)
	if err != nil {
		return fmt.Errorf("encoding the node placement: %w", err)
	}
	for field, value := range placement {
		pod[field] = value
	}
	return nil
}

// setResources sets what the container requests; the manifest holds the recommended values.
func setResources(container map[string]any, asked *operatorv1.ResourceRequirement) error {
	if asked == nil {
		return nil
	}
	switch asked.Type {
	case operatorv1.ResourceQosClassBestEffort:
		delete(container, "resources")
	case operatorv1.ResourceQosClassResourceRequirement:
		delete(container, "resources")
		if asked.ResourceRequirements == nil {
			return nil
		}
		given, err := runtime.DefaultUnstructuredConverter.ToUnstructured(asked.ResourceRequirements)
		if err != nil {
			return fmt.Errorf("encoding the resource requirements: %w", err)
		}
		container["resources"] = given
	default:
	}
	return nil
}

// mount adds the hub kubeconfig to a process that applies works alone, which has no right to read
// the Secret. A registration reads its secrets through the API.
func mount(pod, container map[string]any, p process) {
	if p.registration {
		return
	}
	const name = "hub-kubeconfig-secret"
	pod["volumes"] = []any{map[string]any{"name": name, "secret": map[string]any{"secretName": operatorv1.SecretHubKubeconfig}}}
	container["volumeMounts"] = []any{map[string]any{"name": name, "mountPath": hubPath, "readOnly": true}}
}

// bootstrapSecrets returns the names of the bootstrap secrets of an agent.
func bootstrapSecrets(asked settings.Asked) []string {
	if len(asked.Settings.Hubs) > 0 {
		return asked.Settings.Hubs
	}
	return []string{operatorv1.SecretBootstrapHubKubeconfig}
}
