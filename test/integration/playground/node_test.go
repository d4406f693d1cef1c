// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

// image is the image of pods in these tests; registry and tag have no meaning.
const image = "example.com/test/podapp:v1"

// patience bounds every wait for something that takes milliseconds.
const patience = 2 * time.Minute

// patientProbe is a timeout of probes, in seconds, that a busy machine does not exceed,
// so that a pod is unhealthy only when the test wants it.
const patientProbe = 60

// shared returns one cluster with a process node for all tests that break nothing.
func shared(t *testing.T) *harness.Cluster {
	t.Helper()
	return harness.Shared(t, "node", harness.Node(images(t)))
}

func images(t *testing.T) map[string]string {
	return map[string]string{"podapp": harness.Program(t, "test/integration/playground/podapp")}
}

// app is a Deployment of podapp in a namespace of its own.
type app struct {
	t      *testing.T
	client kubernetes.Interface
	space  string
}

func newApp(t *testing.T, cluster *harness.Cluster) app {
	t.Helper()
	a := app{t: t, client: clientOf(t, cluster.Config)}
	space, err := a.client.CoreV1().Namespaces().Create(
		t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "app-"}}, metav1.CreateOptions{},
	)
	require.NoError(t, err)
	a.space = space.Name
	return a
}

// spec returns a pod of one container that serves, with a readiness probe.
func spec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name:           "app",
		Image:          image,
		Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}},
	}}}
}

func (a app) deploy(pod corev1.PodSpec) {
	a.t.Helper()
	labels := map[string]string{"app": "podapp"}
	_, err := a.client.AppsV1().Deployments(a.space).Create(a.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "podapp"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}, metav1.CreateOptions{})
	require.NoError(a.t, err)
	_, err = a.client.CoreV1().Services(a.space).Create(a.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "podapp"},
		Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, TargetPort: intstr.FromString("http")},
			{Name: "webhook", Port: 443, TargetPort: intstr.FromInt32(9443)},
		}},
	}, metav1.CreateOptions{})
	require.NoError(a.t, err)
}

// pod returns the only pod, or nil.
func (a app) pod() *corev1.Pod {
	a.t.Helper()
	pods, err := a.client.CoreV1().Pods(a.space).List(a.t.Context(), metav1.ListOptions{})
	require.NoError(a.t, err)
	if len(pods.Items) != 1 {
		return nil
	}
	return &pods.Items[0]
}

// await waits until the pod is as wanted.
func (a app) await(what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	a.t.Helper()
	var last *corev1.Pod
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if last = a.pod(); last != nil && wanted(last) {
			return last
		}
		<-time.After(10 * time.Millisecond)
	}
	require.Fail(a.t, "waiting for a pod that is "+what, "%+v", last)
	return nil
}

// follow watches the pod from here on. The returned function waits until the pod was as
// wanted, for however short a time.
func (a app) follow(from *corev1.Pod) func(what string, wanted func(*corev1.Pod) bool) {
	a.t.Helper()
	w, err := a.client.CoreV1().Pods(a.space).Watch(a.t.Context(), metav1.ListOptions{
		FieldSelector:   "metadata.name=" + from.Name,
		ResourceVersion: from.ResourceVersion,
	})
	require.NoError(a.t, err)
	a.t.Cleanup(w.Stop)
	return func(what string, wanted func(*corev1.Pod) bool) {
		a.t.Helper()
		deadline := time.After(patience)
		for {
			select {
			case event := <-w.ResultChan():
				if pod, ok := event.Object.(*corev1.Pod); !ok {
					require.Fail(a.t, "following the pod", "%+v", event)
				} else if wanted(pod) {
					return
				}
			case <-deadline:
				require.Fail(a.t, "waiting for a pod that is "+what)
			}
		}
	}
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// get calls the app through its Service, by kube-apiserver and the egress proxy.
func (a app) get(path string, query ...string) (string, error) { return a.send("GET", path, query...) }

func (a app) send(verb, path string, query ...string) (string, error) {
	request := a.client.CoreV1().RESTClient().Verb(verb).Namespace(a.space).Resource("services").Name("podapp:http").SubResource("proxy").Suffix(path)
	for i := 0; i+1 < len(query); i += 2 {
		request = request.Param(query[i], query[i+1])
	}
	text, err := request.DoRaw(a.t.Context())
	return string(text), err
}

// exit ends the app's process. A GET would be sent again when the connection breaks, and end the
// next process too.
func (a app) exit() {
	a.t.Helper()
	_, err := a.send("POST", "exit", "code", "5")
	require.Error(a.t, err, "the process is gone before it answers")
}

// mustGet calls the app until the Service has endpoints, which takes a moment after the
// pod is ready: until then it is unavailable, and not found before there is an object for them.
func (a app) mustGet(path string, query ...string) string {
	a.t.Helper()
	var text string
	var err error
	require.Eventually(a.t, func() bool {
		text, err = a.get(path, query...)
		return !apierrors.IsServiceUnavailable(err) && !apierrors.IsNotFound(err)
	}, patience, 10*time.Millisecond)
	require.NoError(a.t, err)
	return text
}

func (a app) secret(name string, data map[string][]byte) {
	a.t.Helper()
	_, err := a.client.CoreV1().Secrets(a.space).Create(
		a.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{},
	)
	require.NoError(a.t, err)
}

func TestAPodSeesWhatItsManifestSays(t *testing.T) {
	a := newApp(t, shared(t))
	a.secret("settings", map[string][]byte{"word": []byte("secret word"), "file": []byte("first")})
	pod := spec()
	c := &pod.Containers[0]
	c.Args = []string{"--name=$(POD_NAME)", "$$(POD_NAME)", "$(UNKNOWN)"}
	c.Env = []corev1.EnvVar{
		{
			Name:      "POD_NAME",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
		},
		{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{
			Name:      "WORD",
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "word"}},
		},
		{Name: "TWICE", Value: "$(WORD) $(WORD)"},
	}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/settings"}}
	pod.Volumes = []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "settings"}}}}
	a.deploy(pod)
	running := a.await("ready", ready)

	require.Equal(t, corev1.PodRunning, running.Status.Phase)
	require.Equal(t, "--name="+running.Name+"|$(POD_NAME)|$(UNKNOWN)", a.mustGet("args"))
	require.Equal(t, running.Status.PodIP, a.mustGet("env", "name", "POD_IP"))
	require.Equal(t, "secret word secret word", a.mustGet("env", "name", "TWICE"))
	require.Equal(t, "first", a.mustGet("file", "path", "/etc/settings/file"))
	require.Equal(t, a.space, a.mustGet("file", "path", "/var/run/secrets/kubernetes.io/serviceaccount/namespace"))
	require.Equal(t, "system:serviceaccount:"+a.space+":default", a.mustGet("whoami"))

	settings, err := a.client.CoreV1().Secrets(a.space).Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	settings.Data["file"] = []byte("second")
	_, err = a.client.CoreV1().Secrets(a.space).Update(t.Context(), settings, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		text, err := a.get("file", "path", "/etc/settings/file")
		return err == nil && text == "second"
	}, patience, 20*time.Millisecond)
}

func TestAPodWaitsForTheSecretThatItMounts(t *testing.T) {
	a := newApp(t, shared(t))
	pod := spec()
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "late", MountPath: "/late"}}
	pod.Volumes = []corev1.Volume{{Name: "late", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "late"}}}}
	a.deploy(pod)
	a.await("waiting and says for what", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			strings.Contains(p.Status.ContainerStatuses[0].State.Waiting.Message, `"late" not found`)
	})
	a.secret("late", map[string][]byte{"x": []byte("here")})
	a.await("ready", ready)
	require.Equal(t, "here", a.mustGet("file", "path", "/late/x"))
}

func TestAPodOfAnotherImageStaysPendingAndSaysWhy(t *testing.T) {
	a := newApp(t, shared(t))
	pod := spec()
	pod.Containers[0].Image = "nginx:1.25"
	a.deploy(pod)
	waiting := a.await("refused", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "ImageNotRunnable"
	})
	require.Equal(t, corev1.PodPending, waiting.Status.Phase)
	require.Equal(t, "the process node runs only the images podapp, as local processes; image nginx:1.25 needs a real node",
		waiting.Status.ContainerStatuses[0].State.Waiting.Message)
}

func TestAPodThatEndsIsStartedAgainAndAgainLater(t *testing.T) {
	a := newApp(t, shared(t))
	a.deploy(spec())
	first := a.await("ready", ready)
	a.mustGet("healthz")
	a.exit()
	restarted := a.await("ready again", func(p *corev1.Pod) bool {
		return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 1
	})
	require.Equal(t, first.Name, restarted.Name)
	require.Equal(t, first.Status.PodIP, restarted.Status.PodIP)
	last := restarted.Status.ContainerStatuses[0].LastTerminationState.Terminated
	require.NotNil(t, last)
	require.Equal(t, int32(5), last.ExitCode)

	a.mustGet("healthz")
	follow := a.follow(restarted)
	a.exit()
	follow("backing off", func(p *corev1.Pod) bool {
		w := p.Status.ContainerStatuses[0].State.Waiting
		return w != nil && w.Reason == "CrashLoopBackOff"
	})
	a.await("ready a third time", func(p *corev1.Pod) bool { return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 2 })
}

func TestAPodIsRestartedWhenItsLivenessProbeFails(t *testing.T) {
	a := newApp(t, shared(t))
	pod := spec()
	pod.Containers[0].LivenessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
		PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: patientProbe,
	}
	a.deploy(pod)
	a.await("ready", ready)
	pid := a.mustGet("pid")
	a.mustGet("sick")
	a.await("restarted", func(p *corev1.Pod) bool { return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	require.NotEqual(t, pid, a.mustGet("pid"))
}

func TestAPodIsNotReadyWhileItsReadinessProbeFails(t *testing.T) {
	a := newApp(t, shared(t))
	pod := spec()
	probe := pod.Containers[0].ReadinessProbe
	probe.PeriodSeconds, probe.FailureThreshold, probe.TimeoutSeconds = 1, 1, patientProbe
	a.deploy(pod)
	a.await("ready", ready)
	a.mustGet("sick")
	sick := a.await("not ready", func(p *corev1.Pod) bool { return !ready(p) })
	require.Equal(t, corev1.PodRunning, sick.Status.Phase)
	require.Zero(t, sick.Status.ContainerStatuses[0].RestartCount)
	require.Eventually(t, func() bool {
		_, err := a.get("healthz")
		return apierrors.IsServiceUnavailable(err)
	}, patience, 20*time.Millisecond)
}

// TestAPodBecomesReadyAgain does to a pod what the controller manager does when a node, with the
// machine that it is on, stood still for a minute.
func TestAPodBecomesReadyAgain(t *testing.T) {
	a := newApp(t, shared(t))
	a.deploy(spec())
	pod := a.await("ready", ready)
	said, err := a.client.CoreV1().Pods(a.space).Patch(t.Context(), pod.Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	require.False(t, ready(said))
	a.await("ready again", ready)
}

func TestAPodThatRunsOnceSucceeds(t *testing.T) {
	a := newApp(t, shared(t))
	pod := spec()
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.Containers[0].Args, pod.Containers[0].ReadinessProbe = []string{"once"}, nil
	_, err := a.client.CoreV1().Pods(a.space).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "once"}, Spec: pod}, metav1.CreateOptions{})
	require.NoError(t, err)
	done := a.await("succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	require.Zero(t, done.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	log, err := a.client.CoreV1().Pods(a.space).GetLogs("once", &corev1.PodLogOptions{}).DoRaw(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ran once\n", string(log))
}

func TestADeletedPodEndsGracefullyAndLeavesNothing(t *testing.T) {
	cluster := shared(t)
	a := newApp(t, cluster)
	a.deploy(spec())
	pod := a.await("ready", ready)
	folder := filepath.Join(cluster.Playground.Dir, "pods", string(pod.UID))
	require.DirExists(t, folder)
	require.NoError(
		t,
		a.client.AppsV1().Deployments(a.space).Delete(t.Context(), "podapp", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}),
	)
	require.Eventually(t, func() bool {
		_, err := a.client.CoreV1().Pods(a.space).Get(t.Context(), pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := os.Stat(folder)
		return os.IsNotExist(err)
	}, patience, 20*time.Millisecond)
	log, err := os.ReadFile(filepath.Join(cluster.Playground.Dir, "logs", a.space+"_"+pod.Name+"_app.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "ended as asked")
}

func TestAWebhookByServiceIsAsked(t *testing.T) {
	a := newApp(t, shared(t))
	host := fmt.Sprintf("podapp.%s.svc", a.space)
	authority, err := pki.Open(t.TempDir(), "webhook", time.Now())
	require.NoError(t, err)
	pair, err := authority.Serving("webhook", []string{host}, []net.IP{})
	require.NoError(t, err)
	certificate, err := os.ReadFile(pair.CertFile)
	require.NoError(t, err)
	key, err := os.ReadFile(pair.KeyFile)
	require.NoError(t, err)
	block, _ := pem.Decode(certificate)
	_, err = x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	a.secret("certs", map[string][]byte{"tls.crt": certificate, "tls.key": key})
	pod := spec()
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "certs", MountPath: "/certs"}}
	pod.Volumes = []corev1.Volume{{Name: "certs", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "certs"}}}}
	a.deploy(pod)
	a.await("ready", ready)

	webhooks := a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = webhooks.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: a.space},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "deny.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: authority.Certificate(),
				Service:  &admissionregistrationv1.ServiceReference{Namespace: a.space, Name: "podapp"},
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: a.space}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	create := func() error {
		_, err := a.client.CoreV1().ConfigMaps(a.space).Create(
			t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "denied-"}},
			metav1.CreateOptions{},
		)
		return err
	}
	require.Eventually(t, func() bool {
		err := create()
		return err != nil && strings.Contains(err.Error(), "denied by podapp")
	}, patience, 20*time.Millisecond)

	// Without a ready pod, the error is the reason, not a timeout.
	_, err = a.client.AppsV1().Deployments(a.space).UpdateScale(t.Context(), "podapp", scaleTo(a.space, 0), metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		err := create()
		return err != nil && strings.Contains(err.Error(), "has no ready endpoint")
	}, patience, 20*time.Millisecond)
}

func scaleTo(namespace string, replicas int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "podapp"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
}

func TestPodsComeBackWithTheNode(t *testing.T) {
	cluster := harness.WithNode(t, "c1", images(t))
	a := newApp(t, cluster)
	a.deploy(spec())
	before := a.await("ready", ready)
	pid := a.mustGet("pid")
	require.NoError(t, cluster.Playground.Restart(t.Context(), playground.ProcessNode))
	after := a.await("ready after the restart", func(p *corev1.Pod) bool {
		return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 1
	})
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, before.Status.PodIP, after.Status.PodIP)
	next := a.mustGet("pid")
	require.False(t, runs(t, pid))
	require.True(t, runs(t, next))
	require.NoError(t, cluster.Playground.Stop())
	require.False(t, runs(t, next))
}

// runs reports whether a process runs. A zombie does not.
func runs(t *testing.T, pid string) bool {
	t.Helper()
	state, err := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", pid).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}
