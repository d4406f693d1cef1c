// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestImageName(t *testing.T) {
	for image, want := range map[string]string{
		"ocm-hub":                              "ocm-hub",
		"ghcr.io/kubectl-ocm/ocm-hub":          "ocm-hub",
		"ghcr.io/kubectl-ocm/ocm-hub:v0.1.0":   "ocm-hub",
		"localhost:5000/ocm-hub":               "ocm-hub",
		"localhost:5000/x/ocm-hub@sha256:0123": "ocm-hub",
		"x/ocm-hub:v1@sha256:0123":             "ocm-hub",
	} {
		require.Equal(t, want, imageName(image), image)
	}
}

func TestUnsupportedNamesTheFirstThingThatAProcessCannotHave(t *testing.T) {
	images := map[string]string{"ocm-hub": "/bin/hub", "ocm-agent": "/bin/agent"}
	probe := func(p corev1.ProbeHandler) *corev1.Probe { return &corev1.Probe{ProbeHandler: p} }
	for name, tc := range map[string]struct {
		change  func(*corev1.PodSpec)
		reason  string
		message string
	}{
		"nothing":         {change: func(*corev1.PodSpec) {}},
		"its own program": {change: func(s *corev1.PodSpec) { s.Containers[0].Command = []string{"/ocm-hub", "run"} }},
		"another image": {
			func(s *corev1.PodSpec) {
				s.Containers = append(s.Containers, corev1.Container{Name: "side", Image: "nginx:1.25"})
			},
			"ImageNotRunnable", "the process node runs only the images ocm-agent, ocm-hub, as local processes; image nginx:1.25 needs a real node",
		},
		"another image that ends in ours": {
			func(s *corev1.PodSpec) { s.Containers[0].Image = "evil/not-ocm-hub" }, "ImageNotRunnable",
			"the process node runs only the images ocm-agent, ocm-hub, as local processes; image evil/not-ocm-hub needs a real node",
		},
		"an init container": {
			func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "init", Image: "busybox"}} }, "ImageNotRunnable",
			"the process node runs only the images ocm-agent, ocm-hub, as local processes; image busybox needs a real node",
		},
		"another program": {
			func(s *corev1.PodSpec) { s.Containers[0].Command = []string{"/bin/sh"} }, "PodNotRunnable",
			"container hub: the process node runs the image's own program /ocm-hub, not /bin/sh",
		},
		"a probe that executes": {
			func(s *corev1.PodSpec) {
				s.Containers[0].LivenessProbe = probe(corev1.ProbeHandler{Exec: &corev1.ExecAction{}})
			},
			"PodNotRunnable", "container hub: the process node knows probes by HTTP and TCP only",
		},
		"a volume of the host": {
			func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
			},
			"PodNotRunnable", "volume v: the process node has no volumes of this kind",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "hub", Image: "x/ocm-hub:v1"}}}
			tc.change(spec)
			reason, message := unsupported(spec, images)
			require.Equal(t, tc.reason, reason)
			require.Equal(t, tc.message, message)
		})
	}
}

func TestPortsOfAPodAreDeclaredProbedAndOurOwn(t *testing.T) {
	get := func(port intstr.IntOrString) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: port}}}
	}
	spec := &corev1.PodSpec{Containers: []corev1.Container{
		{
			Ports:         []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {ContainerPort: 8443}},
			LivenessProbe: get(intstr.FromInt32(9000)), ReadinessProbe: get(intstr.FromString("http")),
		},
		{
			StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9001)}}},
		},
	}}
	require.Equal(t, []int32{8080, 8443, 9000, 9001, 9443}, portsOf(spec))
}

func TestMissingLabel(t *testing.T) {
	labels := map[string]string{"os": "linux"}
	require.Empty(t, missingLabel(nil, labels))
	require.Empty(t, missingLabel(map[string]string{"os": "linux"}, labels))
	require.Equal(t, "os=darwin", missingLabel(map[string]string{"os": "darwin"}, labels))
	require.Equal(t, "disk=ssd", missingLabel(map[string]string{"os": "linux", "disk": "ssd"}, labels))
}
