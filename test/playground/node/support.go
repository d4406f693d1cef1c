// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Reasons that a container waits, beside kubelet's own.
const (
	// reasonImage: the process node has no program for the image.
	reasonImage = "ImageNotRunnable"
	// reasonPod: the pod asks for something that a process cannot have.
	reasonPod = "PodNotRunnable"
)

// ourPorts are mapped in every pod, declared or not, because any binary of the product
// may listen there.
var ourPorts = []int32{8443, 9443}

// imageName returns the last part of an image's repository, without tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := path.Base(image)
	name, _, _ = strings.Cut(name, ":")
	return name
}

// unsupported returns why the process node cannot run a pod; an empty reason means that
// it can. images maps image names to programs.
func unsupported(spec *corev1.PodSpec, images map[string]string) (reason, message string) {
	for _, c := range containers(spec) {
		name := imageName(c.Image)
		if images[name] == "" {
			return reasonImage, fmt.Sprintf("the process node runs only the images %s, as local processes; image %s needs a real node",
				strings.Join(slices.Sorted(maps.Keys(images)), ", "), c.Image)
		}
		if len(c.Command) > 0 && path.Base(c.Command[0]) != name {
			return reasonPod, fmt.Sprintf("container %s: the process node runs the image's own program /%s, not %s", c.Name, name, c.Command[0])
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil && (probe.Exec != nil || probe.GRPC != nil) {
				return reasonPod, fmt.Sprintf("container %s: the process node knows probes by HTTP and TCP only", c.Name)
			}
		}
	}
	for _, v := range spec.Volumes {
		if v.EmptyDir == nil && v.Secret == nil && v.ConfigMap == nil && v.DownwardAPI == nil && v.Projected == nil {
			return reasonPod, fmt.Sprintf("volume %s: the process node has no volumes of this kind", v.Name)
		}
	}
	return "", ""
}

// containers lists init containers and containers, in the order they start.
func containers(spec *corev1.PodSpec) []*corev1.Container {
	var all []*corev1.Container
	for i := range spec.InitContainers {
		all = append(all, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		all = append(all, &spec.Containers[i])
	}
	return all
}

// portsOf lists the ports of a pod that need a loopback port.
func portsOf(spec *corev1.PodSpec) []int32 {
	ports := slices.Clone(ourPorts)
	for _, c := range containers(spec) {
		for _, port := range c.Ports {
			ports = append(ports, port.ContainerPort)
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe == nil {
				continue
			}
			if probe.HTTPGet != nil {
				ports = append(ports, probe.HTTPGet.Port.IntVal)
			}
			if probe.TCPSocket != nil {
				ports = append(ports, probe.TCPSocket.Port.IntVal)
			}
		}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	return slices.DeleteFunc(ports, func(p int32) bool { return p == 0 })
}

// missingLabel returns a label that a pod's nodeSelector requires and the node does not
// have, or "".
func missingLabel(selector, labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if labels[key] != selector[key] {
			return key + "=" + selector[key]
		}
	}
	return ""
}
