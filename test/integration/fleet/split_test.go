// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

var clusterManagers = operatorv1.GroupVersion.WithResource("clustermanagers")

// maxSplitAnon is the most private memory of all processes of a split hub, in bytes.
const maxSplitAnon = 200 << 20

// splitHub is a hub in the split layout, with one cluster.
type splitHub struct {
	hub, c1 *harness.Cluster
	kube    kubernetes.Interface
}

// TestASplitHub runs every component in its own pod with the token of its own ServiceAccount,
// and switches the layout there and back while a cluster is joined.
func TestASplitHub(t *testing.T) {
	t.Parallel()
	program := harness.Program(t, "controllers/ocm-hub")
	s := &splitHub{hub: harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": program})}
	s.c1 = harness.FreshWithNode(t, "c1", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})
	var err error
	s.kube, err = kubernetes.NewForConfig(s.hub.Config)
	require.NoError(t, err)
	kubeconfig(t, s.hub, s.c1)
	before := inventory(t, s.hub)
	defer s.logs(t)

	start := time.Now()
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--layout", "split", "--timeout", "5m").code)
	t.Logf("measured: ready after %s", time.Since(start))
	require.Contains(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").out, "unchanged", "the layout stays")
	require.Equal(t, []string{
		"cluster-manager-addon-manager-controller", "cluster-manager-addon-webhook", "cluster-manager-placement-controller",
		"cluster-manager-registration-controller", "cluster-manager-registration-webhook", "cluster-manager-work-controller",
		"cluster-manager-work-webhook",
	}, s.components(t))
	require.Zero(t, run(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept", "--timeout", "5m").code)
	t.Run("works, placements and add-ons", s.fleet)
	t.Run("nothing is forbidden to any component", s.rights)
	s.measure(t)
	t.Run("gates add and remove components", s.gates)
	t.Run("clusters of Cluster API are imported by the component of registration", s.imports)
	t.Run("network policies come and go with their gate", s.policies)
	t.Run("what others change is put back", s.drift)
	t.Run("the limits of connections reach every component", s.limits)
	t.Run("fields of the spec reach every component", s.fields)
	t.Run("the layout is switched there and back", s.switched)
	well(t, "--context", "hub")
	require.Zero(t, run(t, "unjoin", "c1", "--context", "c1", "--hub-context", "hub", "--yes", "--force", "--timeout", "5m").code)
	require.Zero(t, run(t, "hub", "clean", "--context", "hub", "--yes", "--timeout", "5m").code)
	asBefore(t, s.hub, before, "namespaces/c1")
}

// fleet delivers one of each to the cluster.
func (s *splitHub) fleet(t *testing.T) {
	require.Zero(t, runWith(t, configMap, "work", "apply", "web", "-f", "-", "-c", "c1", "--context", "hub", "--wait", "--timeout", "5m").code)
	require.Zero(t, run(t, "clusterset", "bind", "global", "-n", "default", "--context", "hub").code)
	require.Zero(t, run(t, "placement", "create", "everywhere", "-n", "default", "--context", "hub").code)
	set := strings.ReplaceAll(configMap, "greeting", "by-placement")
	require.Zero(t, runWith(t, set, "work", "apply", "all", "-f", "-", "--placement", "default/everywhere", "--context", "hub", "--wait", "--timeout", "5m").code)
	addOn := strings.ReplaceAll(configMap, "greeting", "by-addon")
	require.Zero(t, runWith(t, addOn, "addon", "create", "greeting", "-f", "-", "--registration", "csr", "--context", "hub").code)
	require.Zero(t, run(t, "addon", "enable", "greeting", "-c", "c1", "--context", "hub").code)
	for _, name := range []string{"greeting", "by-placement", "by-addon"} {
		require.True(t, harness.Until(patience, func() bool {
			_, err := s.c1.Dynamic(t).Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
			return err == nil
		}), name)
	}
}

// rights fails if a component was denied something, except before its role took effect.
func (s *splitHub) rights(t *testing.T) {
	s.eachLog(t, func(pod *corev1.Pod, text string) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "forbidden") {
				t.Errorf("%s: %s", pod.Name, line)
			}
		}
	})
}

// manager changes the ClusterManager and waits until the condition Progressing is False.
func (s *splitHub) manager(t *testing.T, body string) {
	t.Helper()
	api := s.hub.Dynamic(t).Resource(clusterManagers)
	changed, err := api.Patch(t.Context(), "cluster-manager", types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
	require.True(t, harness.Until(patience, func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), s.hub.Dynamic(t), clusterManagers, "", "cluster-manager")
		return err == nil && cm.Status.ObservedGeneration >= changed.GetGeneration()
	}))
}

// gates switches features and looks for what belongs to them.
func (s *splitHub) gates(t *testing.T) {
	ctx := t.Context()
	has := func(work, addOns, debug bool) func() bool {
		return func() bool {
			names := strings.Join(s.components(t), " ")
			_, account := s.kube.CoreV1().ServiceAccounts(operatorv1.NamespaceHub).Get(ctx, "work-controller-sa", metav1.GetOptions{})
			_, role := s.kube.RbacV1().ClusterRoles().Get(ctx, "open-cluster-management:cluster-manager-work:controller", metav1.GetOptions{})
			_, binding := s.kube.RbacV1().ClusterRoleBindings().Get(ctx, "open-cluster-management:cluster-manager-work:controller", metav1.GetOptions{})
			_, service := s.kube.CoreV1().Services(operatorv1.NamespaceHub).Get(ctx, operatorv1.ServicePlacement, metav1.GetOptions{})
			_, secret := s.kube.CoreV1().Secrets(operatorv1.NamespaceHub).Get(ctx, operatorv1.SecretPlacementDebugServingCert, metav1.GetOptions{})
			for _, err := range []error{account, role, binding} {
				if (err == nil) != work {
					return false
				}
			}
			return strings.Contains(names, "work-controller") == work && strings.Contains(names, "addon-manager") == addOns &&
				(service == nil) == debug && (secret == nil) == debug && strings.Contains(names, "placement-controller")
		}
	}
	gate := func(part, name, mode string) string {
		return fmt.Sprintf(`%q:{"featureGates":[{"feature":%q,"mode":%q}]}`, part, name, mode)
	}
	related := len(s.status(t).RelatedResources)
	s.manager(t, `{"spec":{`+gate("workConfiguration", "ManifestWorkReplicaSet", "Disable")+`,`+gate("addOnManagerConfiguration", "AddonManagement", "Disable")+
		`,`+gate("placementConfiguration", "PlacementDebugServer", "Enable")+`}}`)
	require.True(t, harness.Until(patience, has(false, false, true)))
	require.True(t, harness.Until(patience, func() bool { return len(s.status(t).RelatedResources) < related }))
	s.manager(t, `{"spec":{`+gate("workConfiguration", "ManifestWorkReplicaSet", "Enable")+`,`+gate("addOnManagerConfiguration", "AddonManagement", "Enable")+
		`,`+gate("placementConfiguration", "PlacementDebugServer", "Disable")+`}}`)
	require.True(t, harness.Until(patience, has(true, true, false)))
	require.True(t, harness.Until(patience, func() bool { return len(s.status(t).RelatedResources) == related }))
}

// policies switches the gate NetworkPolicies, and edits and deletes what belongs to it.
func (s *splitHub) policies(t *testing.T) {
	ctx := t.Context()
	api := s.kube.NetworkingV1().NetworkPolicies(operatorv1.NamespaceHub)
	names := func() string {
		list, err := api.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		var out []string
		for i := range list.Items {
			out = append(out, list.Items[i].Name)
		}
		return strings.Join(out, " ")
	}
	related := func() (n int) {
		for _, r := range s.status(t).RelatedResources {
			if r.Resource == "networkpolicies" && r.Namespace == operatorv1.NamespaceHub {
				n++
			}
		}
		return n
	}
	gate := func(mode string) {
		s.manager(t, `{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"NetworkPolicies","mode":"`+mode+`"}]}}}`)
	}
	gate("Enable")
	const all = "allow-egress allow-hub-ingress allow-intra-namespace allow-prometheus-ingress default-deny-all"
	require.True(t, harness.Until(patience, func() bool { return names() == all && related() == 5 }))
	require.True(t, apimeta.IsStatusConditionTrue(s.status(t).Conditions, operatorv1.ConditionValidFeatureGates))
	// The API server of the playground does not publish its address.
	endpoints := s.kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	port := int32(35001)
	opens := func() bool {
		egress, err := api.Get(ctx, "allow-egress", metav1.GetOptions{})
		require.NoError(t, err)
		return slices.ContainsFunc(egress.Spec.Egress[0].Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntVal == port })
	}
	_, err := endpoints.Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}},
		Endpoints: []discoveryv1.Endpoint{},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, harness.Until(patience, opens))
	require.NoError(t, endpoints.Delete(ctx, "kubernetes", metav1.DeleteOptions{}))
	require.True(t, harness.Until(patience, func() bool { return !opens() }))
	_, err = api.Patch(ctx, "default-deny-all", types.MergePatchType, []byte(`{"spec":{"ingress":[{}]}}`), metav1.PatchOptions{FieldManager: "stranger"})
	require.NoError(t, err)
	require.NoError(t, api.Delete(ctx, "allow-egress", metav1.DeleteOptions{}))
	require.True(t, harness.Until(patience, func() bool {
		denied, err := api.Get(ctx, "default-deny-all", metav1.GetOptions{})
		return err == nil && len(denied.Spec.Ingress) == 0 && names() == all
	}))
	gate("Disable")
	require.True(t, harness.Until(patience, func() bool { return names() == "" && related() == 0 }))
	gate("Enable") // they go with the layout
	require.True(t, harness.Until(patience, func() bool { return names() == all }))
}

func (s *splitHub) status(t *testing.T) operatorv1.ClusterManagerStatus {
	t.Helper()
	cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), s.hub.Dynamic(t), clusterManagers, "", "cluster-manager")
	require.NoError(t, err)
	return cm.Status
}

// drift changes and deletes what the operator applied.
func (s *splitHub) drift(t *testing.T) {
	ctx := t.Context()
	const name = "cluster-manager-work-webhook"
	deployments := s.kube.AppsV1().Deployments(operatorv1.NamespaceHub)
	for _, edit := range []string{
		`{"spec":{"replicas":0}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"work-webhook","args":["webhook","addon"]}]}}}}`,
	} {
		_, err := deployments.Patch(ctx, name, types.StrategicMergePatchType, []byte(edit), metav1.PatchOptions{FieldManager: "stranger"})
		require.NoError(t, err)
		require.True(t, harness.Until(patience, func() bool {
			d, err := deployments.Get(ctx, name, metav1.GetOptions{})
			return err == nil && *d.Spec.Replicas == 1 && d.Spec.Template.Spec.Containers[0].Args[1] == "work"
		}), edit)
	}
	require.NoError(t, s.kube.CoreV1().Services(operatorv1.NamespaceHub).Delete(ctx, name, metav1.DeleteOptions{}))
	require.NoError(t, deployments.Delete(ctx, "cluster-manager-placement-controller", metav1.DeleteOptions{}))
	require.True(t, harness.Until(patience, func() bool {
		_, err := s.kube.CoreV1().Services(operatorv1.NamespaceHub).Get(ctx, name, metav1.GetOptions{})
		d, gone := deployments.Get(ctx, "cluster-manager-placement-controller", metav1.GetOptions{})
		return err == nil && gone == nil && d.Status.AvailableReplicas == 1
	}))
	require.True(t, harness.Until(patience, func() bool {
		c := s.status(t).Conditions
		return apimeta.IsStatusConditionFalse(c, operatorv1.ConditionProgressing) && apimeta.IsStatusConditionFalse(c, operatorv1.ConditionHubPlacementDegraded)
	}))
}

// fields asks for pods that no node takes, so that none of them starts.
func (s *splitHub) fields(t *testing.T) {
	ctx := t.Context()
	pull := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: operatorv1.SecretImagePull}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
	}
	_, err := s.kube.CoreV1().Secrets(operatorv1.NamespaceOperator).Create(ctx, pull, metav1.CreateOptions{})
	require.NoError(t, err)
	s.manager(t, `{"spec":{"nodePlacement":{"nodeSelector":{"no":"node"},"tolerations":[{"key":"t","operator":"Exists"}]},
		"placementImagePullSpec":"example.com/ocm-hub:1","resourceRequirement":{"type":"BestEffort"}}}`)
	last := ""
	rendered := func(selector map[string]string, image string) func() bool {
		return func() bool {
			list, err := s.kube.AppsV1().Deployments(operatorv1.NamespaceHub).List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			for i := range list.Items {
				pod := list.Items[i].Spec.Template.Spec
				ours := pod.Containers[0].Image == image || list.Items[i].Name != "cluster-manager-placement-controller"
				if len(pod.NodeSelector) != len(selector) || len(pod.ImagePullSecrets) != len(selector) || !ours {
					last = fmt.Sprintf("%s %v %v %s", list.Items[i].Name, pod.NodeSelector, pod.ImagePullSecrets, pod.Containers[0].Image)
					return false
				}
			}
			return len(list.Items) == 7
		}
	}
	require.True(t, harness.Until(patience, rendered(map[string]string{"no": "node"}, "example.com/ocm-hub:1")), "%v", &last)
	var copied *corev1.Secret
	harness.Until(patience, func() bool {
		copied, err = s.kube.CoreV1().Secrets(operatorv1.NamespaceHub).Get(ctx, operatorv1.SecretImagePull, metav1.GetOptions{})
		return err == nil
	})
	require.NoError(t, err, "the pull secret is not copied")
	require.Equal(t, pull.Data, copied.Data)
	require.True(t, harness.Until(patience, func() bool {
		c := apimeta.FindStatusCondition(s.status(t).Conditions, operatorv1.ConditionProgressing)
		return c.Reason == operatorv1.ReasonClusterManagerDeploymentRolling
	}))
	require.NoError(t, s.kube.CoreV1().Secrets(operatorv1.NamespaceOperator).Delete(ctx, pull.Name, metav1.DeleteOptions{}))
	s.manager(t, `{"spec":{"nodePlacement":null,"placementImagePullSpec":"quay.io/open-cluster-management/placement:v9","resourceRequirement":null}}`)
	require.True(t, harness.Until(patience, rendered(nil, "ghcr.io/kubectl-ocm/ocm-hub:v0.0.0-dev")), "%v", &last)
	require.True(t, harness.Until(patience, func() bool {
		_, err = s.kube.CoreV1().Secrets(operatorv1.NamespaceHub).Get(ctx, operatorv1.SecretImagePull, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}), "the copy of the pull secret stays: %v", &err)
}

// switched switches to the compact layout and back. Meanwhile admission always answers, and the
// cluster stays available.
func (s *splitHub) switched(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type fault struct {
		at   time.Time
		what string
	}
	var wrong []fault
	watched, stalls := make(chan struct{}), harness.WatchStalls(ctx)
	client := s.hub.Dynamic(t)
	go func() {
		defer close(watched)
		bad := object("cluster.open-cluster-management.io/v1", "ManagedCluster", "", "kube-asked", nil)
		for ctx.Err() == nil {
			_, err := client.Resource(clusters).Create(ctx, bad, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if !apierrors.IsBadRequest(err) && ctx.Err() == nil {
				wrong = append(wrong, fault{time.Now(), fmt.Sprintf("admission: %v", err)})
			}
			mc, err := typed.Get[clusterv1.ManagedCluster](ctx, client, clusters, "", "c1")
			if err == nil && !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionAvailable) {
				wrong = append(wrong, fault{time.Now(), fmt.Sprintf("availability: %+v", mc.Status.Conditions)})
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	for _, layout := range []string{"compact", "split"} {
		require.Zero(t, run(t, "hub", "init", "--context", "hub", "--layout", layout, "--timeout", "5m").code)
		split := layout == "split"
		require.Equal(t, split, len(s.components(t)) > 0)
		var gone map[string]bool
		require.True(t, harness.Until(patience, func() bool {
			gone = s.goneOfLayout(t)
			return maps.Equal(gone, map[string]bool{"account": !split, "role": !split, "operator": !split, "policy": !split, "policy of the one process": split})
		}), "%s: %v", layout, &gone)
		require.Contains(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").out, "unchanged")
	}
	cancel()
	<-watched
	// A lease runs out, and so do the timeouts of probes, while a machine stands still.
	require.Empty(t, slices.DeleteFunc(wrong, func(f fault) bool { return stalls.Excuse(f.at, time.Minute) }))
}

// goneOfLayout looks for one object of each kind that belongs to one layout only. The operator
// writes and removes them after the pods of the layout run.
func (s *splitHub) goneOfLayout(t *testing.T) map[string]bool {
	t.Helper()
	ctx := t.Context()
	_, account := s.kube.CoreV1().ServiceAccounts(operatorv1.NamespaceHub).Get(ctx, "placement-controller-sa", metav1.GetOptions{})
	_, role := s.kube.RbacV1().ClusterRoles().Get(ctx, "open-cluster-management:cluster-manager-placement:controller", metav1.GetOptions{})
	_, operator := s.kube.RbacV1().ClusterRoles().Get(ctx, "cluster-manager-operator", metav1.GetOptions{})
	_, policy := s.kube.NetworkingV1().NetworkPolicies(operatorv1.NamespaceHub).Get(ctx, "default-deny-all", metav1.GetOptions{})
	_, own := s.kube.NetworkingV1().NetworkPolicies(operatorv1.NamespaceOperator).Get(ctx, "cluster-manager-traffic", metav1.GetOptions{})
	out := map[string]bool{}
	for name, err := range map[string]error{"account": account, "role": role, "operator": operator, "policy": policy, "policy of the one process": own} {
		out[name] = apierrors.IsNotFound(err)
	}
	return out
}

// components returns the names of the Deployments in the namespace of the components.
func (s *splitHub) components(t *testing.T) []string {
	t.Helper()
	list, err := s.kube.AppsV1().Deployments(operatorv1.NamespaceHub).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}

// measure compares the memory of all processes of the hub with their budget.
func (s *splitHub) measure(t *testing.T) {
	t.Helper()
	var all memory.Usage
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		env, also := os.ReadFile(filepath.Join(dir, "environ"))
		program, arguments, _ := strings.Cut(string(line), "\x00")
		if err != nil || also != nil || filepath.Base(program) != "ocm-hub" || !strings.Contains(string(env), s.hub.Playground.Dir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		require.NoError(t, err)
		u, err := memory.Of(pid)
		require.NoError(t, err)
		t.Logf("measured: ocm-hub %s: %s", strings.ReplaceAll(arguments, "\x00", " "), u)
		all.Anon += u.Anon
	}
	t.Logf("measured: all processes: RssAnon %s", memory.MiB(all.Anon))
	require.Positive(t, all.Anon)
	require.LessOrEqual(t, all.Anon, int64(maxSplitAnon))
}

// logs prints the logs of all pods of the hub when the test has failed.
func (s *splitHub) logs(t *testing.T) {
	if !t.Failed() {
		return
	}
	cm, err := typed.Get[operatorv1.ClusterManager](context.Background(), s.hub.Dynamic(t), clusterManagers, "", "cluster-manager")
	if err == nil {
		for _, c := range cm.Status.Conditions {
			t.Logf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	s.eachLog(t, func(pod *corev1.Pod, text string) { t.Logf("pod %s %s\n%s", pod.Name, pod.Status.Phase, text) })
}

// eachLog calls f with the log of each pod of the hub.
func (s *splitHub) eachLog(t *testing.T, f func(*corev1.Pod, string)) {
	for _, namespace := range []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub} {
		pods, err := s.kube.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			continue
		}
		for i := range pods.Items {
			text, err := s.kube.CoreV1().Pods(namespace).GetLogs(pods.Items[i].Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
			f(&pods.Items[i], fmt.Sprintf("%s%v", text, err))
		}
	}
}
