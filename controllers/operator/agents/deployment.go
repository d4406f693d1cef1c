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

// spokeSecret returns the Secret with which a hosted process reaches its managed cluster.
func (p process) spokeSecret() string {
	return operatorv1.SecretExternalManagedKubeconfig + "-" + p.command
}

// image returns the image of the process; own is that of this program.
func (p process) image(k *operatorv1.Klusterlet, own string) string {
	_, given := p.imageField(k)
	return image.Chosen(given, own)
}

// imageField returns the field of the spec that names the image of the process, and its value.
func (p process) imageField(k *operatorv1.Klusterlet) (field, given string) {
	switch p {
	case registrationProcess:
		return "registrationImagePullSpec", k.Spec.RegistrationImagePullSpec
	case workProcess:
		return "workImagePullSpec", k.Spec.WorkImagePullSpec
	}
	return "imagePullSpec", k.Spec.ImagePullSpec
}

// deploymentOptions say what a Deployment depends on besides the Klusterlet.
type deploymentOptions struct {
	namespace, image, pullSecret, cluster string
	replicas                              int64
	// limits are the flags that limit connections, and labels those of the Klusterlet.
	limits []string
	labels map[string]string
	// managed is the namespace of a hosted agent on its managed cluster; empty for another.
	managed string
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
	if o.managed != "" {
		// The accounts of another namespace are for new pods: their tokens end with the namespace.
		_ = unstructured.SetNestedField(metadata, o.managed, "annotations", operatorv1.LabelKlusterlet)
	}
	pod, _ := template["spec"].(map[string]any)
	if err := fillPod(pod, p, k, asked, o); err != nil {
		return nil, "", err
	}
	var hashed any = spec
	if len(o.labels) > 0 {
		hashed = []any{spec, o.labels}
	}
	raw, err := json.Marshal(hashed)
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
	container["args"] = arguments(p, k, asked, o)
	mount(pod, container, p, o.managed != "")
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

// mount adds the Secrets that a process reads as files: what applies works alone has no right to
// read the hub kubeconfig, and a hosted process reaches its managed cluster with another. A
// registration reads its secrets through the API.
func mount(pod, container map[string]any, p process, hosted bool) {
	var volumes, mounts []any
	add := func(name, secret, path string) {
		volumes = append(volumes, map[string]any{"name": name, "secret": map[string]any{"secretName": secret}})
		mounts = append(mounts, map[string]any{"name": name, "mountPath": path, "readOnly": true})
	}
	if !p.registration {
		add("hub-kubeconfig-secret", operatorv1.SecretHubKubeconfig, hubPath)
	}
	if hosted {
		add("spoke-kubeconfig-secret", p.spokeSecret(), spokePath)
	}
	if len(volumes) > 0 {
		pod["volumes"], container["volumeMounts"] = volumes, mounts
	}
}

// bootstrapSecrets returns the names of the bootstrap secrets of an agent.
func bootstrapSecrets(asked settings.Asked) []string {
	if len(asked.Settings.Hubs) > 0 {
		return asked.Settings.Hubs
	}
	return []string{operatorv1.SecretBootstrapHubKubeconfig}
}
