// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	agentconfig "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	workagent "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

var (
	works               = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)
	applieds            = workv1.GroupVersion.WithResource(workv1.ResourceAppliedManifestWorks)
	configMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets             = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces          = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceAccounts     = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	roleBindings        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	definitions         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	events              = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// scene is one cluster's namespace on the hub and a namespace on the managed cluster.
type scene struct {
	t testing.TB
	// cluster is the namespace on the hub, namespace that on the managed cluster.
	cluster, namespace string
	hub, spoke         dynamic.Interface
	// config is the agent's configuration; hubHash and agentID are the scene's own.
	config workagent.Config
	// sent records what the agent sends, clock is its clock.
	sent  *faults.Process
	clock *hands
}

var (
	prepared sync.Map
	// scenes counts the scenes, so that a test that runs twice has two.
	scenes atomic.Int64
)

// newScene prepares both clusters for one test, without starting the agent.
func newScene(t testing.TB) *scene {
	t.Helper()
	return sceneOn(t, harness.Shared(t, "hub"), harness.Shared(t, "spoke"))
}

// sceneOn is newScene on clusters that the caller chooses.
func sceneOn(t testing.TB, hub, spoke *harness.Cluster) *scene {
	t.Helper()
	once, _ := prepared.LoadOrStore(hub.Config.Host+" "+spoke.Config.Host, sync.OnceFunc(func() { prepare(t, hub, spoke) }))
	once.(func())()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", t.Name(), scenes.Add(1)))
	id := hex.EncodeToString(sum[:])
	s := &scene{
		t: t, cluster: "c-" + id[:8], namespace: "ns-" + id[:8],
		hub: hub.Dynamic(t), spoke: spoke.Dynamic(t), sent: &faults.Process{}, clock: &hands{},
	}
	apply(t, s.hub, namespaces, "", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, s.cluster))
	apply(t, s.spoke, namespaces, "", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, s.namespace))
	apply(t, s.hub, roleBindings, s.cluster, fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
		"metadata":{"name":"open-cluster-management:managedcluster:%[1]s:work","namespace":%[1]q},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[2]q},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:open-cluster-management:%[1]s"}]}`, s.cluster, clusterv1.RoleWork))
	hubConfig := rest.CopyConfig(hub.Config)
	hubConfig.Impersonate = rest.ImpersonationConfig{
		UserName: "system:open-cluster-management:" + s.cluster + ":agent",
		Groups:   []string{"system:open-cluster-management:" + s.cluster, "system:open-cluster-management:managed-clusters", "system:authenticated"},
	}
	spokeConfig := spoke.As(t, "open-cluster-management-agent", agentconfig.ServiceAccount("klusterlet"))
	s.config = workagent.Config{
		Hub: s.sent.On(hubConfig, "hub"), Spoke: s.sent.On(spokeConfig, "spoke"),
		ClusterName: s.cluster, HubHash: id, AgentID: "agent-" + id[:8], Clock: s.clock, Log: log(t),
		SealAfter: time.Nanosecond,
	}
	t.Cleanup(s.clean)
	return s
}

// in returns the same scene for a subtest.
func (s *scene) in(t testing.TB) *scene {
	out := *s
	out.t = t
	return &out
}

// log writes the agent's log into the test's.
func log(t testing.TB) logr.Logger {
	if test, ok := t.(*testing.T); ok {
		return testr.New(test)
	}
	return logr.Discard()
}

// prepare installs, once for all tests, what both clusters need.
func prepare(t testing.TB, hub, spoke *harness.Cluster) {
	hubCRD, err := crd.Get("manifestworks.work.open-cluster-management.io")
	require.NoError(t, err)
	install(t, hub.Dynamic(t), ofALaterVersion(t, hubCRD))
	spokeCRDs, err := crd.Agent()
	require.NoError(t, err)
	for _, c := range spokeCRDs {
		install(t, spoke.Dynamic(t), ofALaterVersion(t, c))
	}
	apply(t, hub.Dynamic(t), clusterRoles, "", fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q},"rules":[
		{"apiGroups":["","events.k8s.io"],"resources":["events"],"verbs":["create","patch","update"]},
		{"apiGroups":["work.open-cluster-management.io"],"resources":["manifestworks"],"verbs":["get","list","watch","update","patch"]},
		{"apiGroups":["work.open-cluster-management.io"],"resources":["manifestworks/status"],"verbs":["patch","update"]}]}`, clusterv1.RoleWork))
	objects, err := agentconfig.Objects(agentconfig.Options{Image: "unused", ClusterName: "unused"})
	require.NoError(t, err)
	for _, o := range objects {
		switch o.GetKind() {
		case "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			applyObject(t, spoke.Dynamic(t), reconcile.ResourceOf(o.GroupVersionKind()), o)
		}
	}
	// The authorizer learns of them later, and a refused agent backs off.
	awaitRights(t, spoke.Dynamic(
		t,
	), agentUser, "", `[{"apiGroups":["work.open-cluster-management.io"],"resources":["appliedmanifestworks"],"verbs":["list","watch","create","patch"]},
		{"apiGroups":[""],"resources":["configmaps"],"verbs":["list","watch","patch","delete"]}]`)
}

func install(t testing.TB, client dynamic.Interface, definition *unstructured.Unstructured) {
	applyObject(t, client, definitions, definition)
	wait(t, func() bool {
		live, err := client.Resource(definitions).Get(context.Background(), definition.GetName(), metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, c := range conditions {
			if m := c.(map[string]any); m["type"] == "Established" && m["status"] == "True" {
				return true
			}
		}
		return false
	}, "definition %s is not served", definition.GetName())
}

// clean removes what other scenes would see, without an agent. The namespaces stay: Kubernetes
// takes some seventy requests to delete one, and no other scene has the same.
func (s *scene) clean() {
	for _, w := range s.list(s.hub, works, s.cluster) {
		drop(s.t, s.hub, works, &w)
	}
	for _, a := range s.list(s.spoke, applieds, "") {
		if strings.HasPrefix(a.GetName(), s.config.HubHash) {
			drop(s.t, s.spoke, applieds, &a)
		}
	}
}

func drop(t testing.TB, client dynamic.Interface, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	api := client.Resource(gvr).Namespace(o.GetNamespace())
	_, err := api.Patch(context.Background(), o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err == nil {
		err = api.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{})
	}
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
}

func (s *scene) list(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string) []unstructured.Unstructured {
	list, err := client.Resource(gvr).Namespace(namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(s.t, err)
	return list.Items
}

// start runs an agent until the returned function is called or the test ends.
func (s *scene) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- workagent.Run(ctx, s.config) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(s.t, <-done)
	})
	s.t.Cleanup(stop)
	return stop
}

// change edits a work before it is sent.
type change func(*workv1.ManifestWork)

// create creates a work of manifests in JSON; NS stands for the scene's namespace.
func (s *scene) create(name string, manifests []string, changes ...change) *workv1.ManifestWork {
	s.t.Helper()
	work := &workv1.ManifestWork{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.cluster},
	}
	s.manifests(manifests...)(work)
	for _, c := range changes {
		c(work)
	}
	u, err := typed.ToUnstructured(work)
	require.NoError(s.t, err)
	live, err := s.hub.Resource(works).Namespace(s.cluster).Create(context.Background(), u, metav1.CreateOptions{})
	require.NoError(s.t, err)
	out, err := typed.FromUnstructured[workv1.ManifestWork](live)
	require.NoError(s.t, err)
	return out
}

// update edits the spec of a work on the hub.
func (s *scene) update(name string, changes ...change) *workv1.ManifestWork {
	s.t.Helper()
	var out *workv1.ManifestWork
	s.eventually(func() bool {
		work := s.work(name)
		for _, c := range changes {
			c(work)
		}
		u, err := typed.ToUnstructured(work)
		require.NoError(s.t, err)
		live, err := s.hub.Resource(works).Namespace(s.cluster).Update(context.Background(), u, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false
		}
		require.NoError(s.t, err)
		out, err = typed.FromUnstructured[workv1.ManifestWork](live)
		require.NoError(s.t, err)
		return true
	}, "work %s is written by others all the time", name)
	return out
}

func (s *scene) manifests(manifests ...string) change {
	return func(work *workv1.ManifestWork) {
		work.Spec.Workload.Manifests = nil
		for _, m := range manifests {
			var entry workv1.Manifest
			entry.Raw = []byte(strings.ReplaceAll(m, "NS", s.namespace))
			work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, entry)
		}
	}
}

func (s *scene) work(name string) *workv1.ManifestWork {
	s.t.Helper()
	work, err := typed.Get[workv1.ManifestWork](context.Background(), s.hub, works, s.cluster, name)
	require.NoError(s.t, err)
	return work
}

// applied returns the AppliedManifestWork of a work, nil if there is none.
func (s *scene) applied(work string) *workv1.AppliedManifestWork {
	s.t.Helper()
	out, err := typed.Get[workv1.AppliedManifestWork](context.Background(), s.spoke, applieds, "", s.config.HubHash+"-"+work)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s.t, err)
	return out
}

func (s *scene) remove(name string) {
	s.t.Helper()
	require.NoError(s.t, s.hub.Resource(works).Namespace(s.cluster).Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// gone waits until the work and its AppliedManifestWork are gone.
func (s *scene) gone(name string) {
	s.t.Helper()
	s.eventually(func() bool {
		_, err := s.hub.Resource(works).Namespace(s.cluster).Get(context.Background(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && s.applied(name) == nil
	}, "work %s is still there", name)
}

// get reads an object of the managed cluster's test namespace, nil for none.
func (s *scene) get(gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	s.t.Helper()
	return s.getIn(gvr, s.namespace, name)
}

func (s *scene) getIn(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.spoke.Resource(gvr).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s.t, err)
	return u
}

// data returns one value of a ConfigMap; "-" if there is no such ConfigMap.
func (s *scene) data(name, key string) string {
	s.t.Helper()
	u := s.get(configMaps, name)
	if u == nil {
		return "-"
	}
	v, _, _ := unstructured.NestedString(u.Object, "data", key)
	return v
}

// patch edits an object on the managed cluster as another user.
func (s *scene) patch(gvr schema.GroupVersionResource, name, body string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.spoke.Resource(gvr).Namespace(s.namespace).Patch(
		context.Background(), name, types.MergePatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "somebody"},
	)
	require.NoError(s.t, err)
	return u
}

// settled waits for a condition of the work at its current generation.
func (s *scene) settled(name, kind string, want metav1.ConditionStatus) *workv1.ManifestWork {
	s.t.Helper()
	var work *workv1.ManifestWork
	s.eventually(func() bool {
		work = s.work(name)
		c := apimeta.FindStatusCondition(work.Status.Conditions, kind)
		return c != nil && c.Status == want && c.ObservedGeneration == work.Generation
	}, "%s of work %s is not %s: %s", kind, name, want, dump(&work))
	return work
}

// ready waits until the work is applied and available.
func (s *scene) ready(name string) *workv1.ManifestWork {
	s.t.Helper()
	s.settled(name, workv1.ConditionApplied, metav1.ConditionTrue)
	return s.settled(name, workv1.ConditionAvailable, metav1.ConditionTrue)
}

// dumper formats the status only when it is printed.
type dumper struct{ work **workv1.ManifestWork }

func dump(work **workv1.ManifestWork) dumper { return dumper{work} }

// String returns the status in JSON.
func (d dumper) String() string {
	if *d.work == nil {
		return "none"
	}
	raw, _ := json.MarshalIndent((*d.work).Status, "", " ")
	return string(raw)
}

// events returns the Events on the hub with a reason.
func (s *scene) events(reason string) []unstructured.Unstructured {
	s.t.Helper()
	return slices.DeleteFunc(s.list(s.hub, events, s.cluster), func(e unstructured.Unstructured) bool { return e.Object["reason"] != reason })
}

// condition returns a condition of one manifest.
func condition(work *workv1.ManifestWork, ordinal int, kind string) metav1.Condition {
	if ordinal < len(work.Status.ResourceStatus.Manifests) {
		if c := apimeta.FindStatusCondition(work.Status.ResourceStatus.Manifests[ordinal].Conditions, kind); c != nil {
			return *c
		}
	}
	return metav1.Condition{}
}

func configMap(name string, data ...string) string {
	var pairs []string
	for i := 0; i+1 < len(data); i += 2 {
		pairs = append(pairs, fmt.Sprintf("%q:%q", data[i], data[i+1]))
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"NS"},"data":{%s}}`, name, strings.Join(pairs, ","))
}

func apply(t testing.TB, client dynamic.Interface, gvr schema.GroupVersionResource, namespace, raw string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(raw), &u.Object), raw)
	u.SetNamespace(namespace)
	applyObject(t, client, gvr, u)
}

func applyObject(t testing.TB, client dynamic.Interface, gvr schema.GroupVersionResource, u *unstructured.Unstructured) {
	t.Helper()
	_, err := client.Resource(gvr).Namespace(u.GetNamespace()).
		Apply(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(t, err)
}

// writes returns the requests that change something, without Events.
func writes(requests []string, side string) []string {
	var out []string
	for _, r := range requests {
		if strings.HasPrefix(r, side+" ") && !strings.HasPrefix(r, side+" GET") && !strings.HasSuffix(r, "/events") {
			out = append(out, r)
		}
	}
	return out
}
