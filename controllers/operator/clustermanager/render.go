// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/debug"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// rendering is what the objects that this process applies depend on.
type rendering struct {
	Spec     operatorv1.ClusterManagerSpec
	Features Features
	// Labels are those of the ClusterManager that every object gets.
	Labels map[string]string
	// Image is that of this project, and Pull its policy; empty leaves the default.
	Image string
	Pull  corev1.PullPolicy
	// Version is the release that writes the objects.
	Version  string
	Replicas int32
	// PullSecret is the Secret in the components' namespace with the credentials for images;
	// nil if there is none.
	PullSecret *corev1.Secret
	// Split is nil in the compact layout, which has policies only.
	Split *Split
	// APIServer are the ports of the hub's API server.
	APIServer []int64
	// TLS are the flags that limit connections.
	TLS []string
	// Bundle verifies the serving certificates; while it is empty, the API of managed clusters is
	// not registered.
	Bundle []byte
}

// objects returns what the layout consists of besides what an installer applies, in the order
// to apply.
func (r rendering) objects() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	if r.Split != nil {
		if err := checkSplit(r.Spec); err != nil {
			return nil, err
		}
	}
	if r.PullSecret != nil {
		u, err := typed.ToUnstructured(r.PullSecret)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	for _, c := range components {
		if r.Split == nil || !c.isWanted(r.Features) {
			continue
		}
		objects, err := r.component(c)
		if err != nil {
			return nil, fmt.Errorf("preparing component %s: %w", c.name, err)
		}
		out = append(out, objects...)
	}
	policies, err := r.policies()
	if err != nil {
		return nil, fmt.Errorf("preparing the network policies: %w", err)
	}
	out = append(out, policies...)
	if r.Features.ClusterProxy && len(r.Bundle) > 0 {
		out = append(out, apiService(r.Bundle))
	}
	for _, u := range out {
		labels := maps.Clone(r.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, u.GetLabels())
		maps.Copy(labels, inventory(hub.Name))
		u.SetLabels(labels)
	}
	return out, nil
}

// component returns the objects of one component.
func (r rendering) component(c component) ([]*unstructured.Unstructured, error) {
	listed, err := hub.Component(c.name)
	if err != nil {
		return nil, err
	}
	at := bindingOf(c, r.Spec)
	var out []*unstructured.Unstructured
	for _, u := range listed {
		if u.GetName() == c.app && u.GetKind() == "Service" {
			at.setTarget(u)
		}
		if r.leavesOut(u) {
			continue
		}
		if u.GetKind() == "ClusterRole" && !r.Features.ClusterProfile && !r.Features.ProfilesServed {
			dropGroup(u, multiclusterv1alpha1.GroupName)
		}
		out = append(out, u)
	}
	d, err := typed.ToUnstructured(r.deployment(c))
	if err != nil {
		return nil, err
	}
	out = append(out, d)
	if r.Replicas < 2 {
		return out, nil
	}
	return append(out, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
		"metadata": map[string]any{"namespace": hub.ComponentNamespace, "name": c.deployment()},
		"spec":     map[string]any{"maxUnavailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": c.app}}},
	}}), nil
}

// leavesOut reports whether an object is for a gate that is off.
func (r rendering) leavesOut(u *unstructured.Unstructured) bool {
	switch u.GetName() {
	case hub.PlacementService:
		return u.GetKind() == "Service" && !r.Features.PlacementDebugServer
	case hub.PermissionsRole:
		return !r.Features.ClusterPermission
	}
	return false
}

// dropGroup removes the rules about an API group from a role.
func dropGroup(role *unstructured.Unstructured, group string) {
	rules, _ := role.Object["rules"].([]any)
	role.Object["rules"] = slices.DeleteFunc(rules, func(rule any) bool {
		m, _ := rule.(map[string]any)
		groups, _ := m["apiGroups"].([]any)
		return slices.Contains(groups, any(group))
	})
}

// deployment returns the Deployment of a component.
func (r rendering) deployment(c component) *appsv1.Deployment {
	labels := map[string]string{"app": c.app}
	template := maps.Clone(r.Labels)
	if template == nil {
		template = map[string]string{}
	}
	maps.Copy(template, inventory(hub.Name))
	maps.Copy(template, labels)
	seconds := int64(20) // longer than webhooks linger
	yes := true
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: hub.ComponentNamespace, Name: c.deployment(), Labels: map[string]string{"app": c.app},
			Annotations: map[string]string{operatorv1.AnnotationVersion: strings.TrimPrefix(r.Version, "v")},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &r.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template}, Spec: corev1.PodSpec{
				ServiceAccountName: hub.AccountOf(c.name), TerminationGracePeriodSeconds: &seconds, Affinity: apart(labels),
				NodeSelector: r.Spec.NodePlacement.NodeSelector, Tolerations: r.Spec.NodePlacement.Tolerations,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []corev1.Container{r.container(c)}, Volumes: r.volumes(c),
			}},
		},
	}
	if r.PullSecret != nil {
		d.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: r.PullSecret.Name}}
	}
	bindingOf(c, r.Spec).setNetwork(d, r.Replicas)
	// A Deployment's spec always encodes.
	raw, _ := json.Marshal(d.Spec)
	sum := sha256.Sum256(raw)
	d.Annotations[operatorv1.AnnotationSpecHash] = hex.EncodeToString(sum[:])
	return d
}

// apart keeps the pods of a component in different zones and on different nodes, if possible.
func apart(labels map[string]string) *corev1.Affinity {
	term := func(weight int32, key string) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}}
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			term(70, "topology.kubernetes.io/zone"), term(30, "kubernetes.io/hostname"),
		},
	}}
}

func (r rendering) container(c component) corev1.Container {
	no, yes := false, true
	at := bindingOf(c, r.Spec)
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	probe := func(path string, delay, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromInt32(at.health), Scheme: corev1.URISchemeHTTPS,
			}},
			InitialDelaySeconds: delay, PeriodSeconds: period,
		}
	}
	ports := []corev1.ContainerPort{{Name: "https", ContainerPort: at.health, Protocol: corev1.ProtocolTCP}}
	if c.isWebhook() {
		ports = append(ports, corev1.ContainerPort{Name: "webhook", ContainerPort: at.port, Protocol: corev1.ProtocolTCP})
	}
	if r.explains(c) {
		ports = append(ports, corev1.ContainerPort{Name: "debug", ContainerPort: debug.Port, Protocol: corev1.ProtocolTCP})
	}
	mounts := []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
	for _, v := range r.volumes(c)[1:] {
		path := folder + "/" + v.Name
		if v.Secret != nil && c.mount != "" {
			path = c.mount
		}
		mounts = append(mounts, corev1.VolumeMount{Name: v.Name, MountPath: path, ReadOnly: true})
	}
	return corev1.Container{
		Name: c.name, Image: image.Chosen(c.image(r.Spec), r.Image), ImagePullPolicy: r.Pull, Args: r.args(c), Ports: ports, VolumeMounts: mounts,
		Env:           []corev1.EnvVar{field(inpod.EnvName, "metadata.name"), field(inpod.EnvNamespace, "metadata.namespace")},
		LivenessProbe: probe("/healthz", 2, 10), ReadinessProbe: probe("/readyz", 0, 2), Resources: resources(r.Spec.ResourceRequirement),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Privileged: &no, RunAsNonRoot: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// explains reports whether the component serves explanations of placements.
func (r rendering) explains(c component) bool {
	return c.name == "placement-controller" && r.Features.PlacementDebugServer
}

// volumes returns the volumes of a component; the first is for temporary files.
func (r rendering) volumes(c component) []corev1.Volume {
	out := []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	secret := c.certificate
	if r.explains(c) {
		secret = operatorv1.SecretPlacementDebugServingCert
	}
	if secret != "" {
		out = append(out, corev1.Volume{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}})
	}
	if c.isWebhook() {
		optional := true
		out = append(out, corev1.Volume{Name: "clients", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: hub.AdmissionClients}, Optional: &optional,
		}}})
	}
	return out
}

// args returns the arguments of a component: one flag for each gate that is not as usual.
func (r rendering) args(c component) []string {
	out := slices.Concat(c.args, r.TLS, r.Split.All)
	on := r.Features.gates()
	for _, name := range slices.Sorted(maps.Keys(c.gates)) {
		g := c.gates[name]
		switch {
		case name == gateClusterProfile:
			// Naming it says that its API is served: then profiles are kept, or removed.
			if c.isWebhook() || !r.Features.ProfilesServed {
				continue
			}
		case name == gatePermission && !c.isWebhook() && !r.Features.PermissionsServed: // naming it says so
			continue
		case name == gateDefaultClusterSet && c.isWebhook(): // always named
		case !g.supported || on[name] == g.on:
			continue
		}
		out = append(out, "--feature-gates="+name+"="+strconv.FormatBool(on[name]))
	}
	switch {
	case c.isWebhook():
		out = append(out, "--cert-dir="+folder+"/serving", "--client-ca-file="+folder+"/clients/"+operatorv1.ConfigMapKeyCABundle)
		out = append(out, bindingOf(c, r.Spec).args()...)
		out = append(out, r.Split.Webhook...)
	case r.explains(c):
		out = append(out, "--cert-dir="+folder+"/certificate")
	case c.name == "registration-controller":
		out = append(out, r.registrationArgs()...)
	}
	return out
}

// registrationArgs returns the arguments of the loops of registration.
func (r rendering) registrationArgs() []string {
	var out []string
	if c := r.Spec.RegistrationConfiguration; c != nil {
		if len(c.AutoApproveUsers) > 0 {
			out = append(out, "--cluster-auto-approval-users="+joined(c.AutoApproveUsers))
		}
		if users := csrIdentities(*c); len(users) > 0 {
			out = append(out, "--auto-approved-csr-users="+joined(users))
		}
	}
	if len(r.Features.Renderers) > 0 {
		out = append(out, "--import-renderers="+strings.Join(r.Features.Renderers, ","))
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(r.Features.Labels)) {
		pairs = append(pairs, key+"="+r.Features.Labels[key])
	}
	if len(pairs) > 0 {
		out = append(out, "--labels="+strings.Join(pairs, ","))
	}
	return append(out, r.Split.Registration...)
}

// joined joins names for a flag. One with a comma is quoted: otherwise it would be two names.
func joined(names []string) string {
	var out strings.Builder
	w := csv.NewWriter(&out)
	_ = w.Write(names) // a strings.Builder cannot fail
	w.Flush()
	return strings.TrimSuffix(out.String(), "\n")
}

// resources returns what every container requests.
func resources(r *operatorv1.ResourceRequirement) corev1.ResourceRequirements {
	switch {
	case r == nil || r.Type == "" || r.Type == operatorv1.ResourceQosClassDefault:
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
		}}
	case r.Type == operatorv1.ResourceQosClassResourceRequirement && r.ResourceRequirements != nil:
		return *r.ResourceRequirements
	}
	return corev1.ResourceRequirements{}
}
