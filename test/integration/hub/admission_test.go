// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// user returns a client of a ServiceAccount with the given rules in the whole cluster.
func (s *scene) user(t testing.TB, name string, rules ...rbacv1.PolicyRule) dynamic.Interface {
	t.Helper()
	ctx := context.Background()
	_, err := s.kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	dyn, _ := clients(t, s.As(t, "default", name))
	return dyn
}

var (
	editClusters = rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, Verbs: []string{"*"}}
	acceptAny    = rbacv1.PolicyRule{APIGroups: []string{clusterv1.RegisterGroup}, Resources: []string{"managedclusters/accept"}, Verbs: []string{"update"}}
	joinAny      = rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersets/join"}, Verbs: []string{"create"}}
)

func joinSet(set string) rbacv1.PolicyRule {
	rule := joinAny
	rule.ResourceNames = []string{set}
	return rule
}

func TestReservedNamesAreRefusedAtCreation(t *testing.T) {
	s := sharedHub(t)
	dyn, _ := s.bootstrap(t)
	for _, name := range []string{
		"default",
		"kube-system",
		"openshift-x",
		"open-cluster-management",
		"open-cluster-management-hub",
		"registration",
		"work",
		"managed-clusters",
	} {
		err := create(dyn, cluster(name))
		require.True(t, apierrors.IsBadRequest(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "reserved")
	}
	err := create(s.dyn, cluster("dotted.name"))
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
}

func TestAcceptingAndTakingBackNeedTheSamePermission(t *testing.T) {
	s := sharedHub(t)
	dyn, _ := s.bootstrap(t)
	require.NoError(t, create(dyn, cluster("guarded")))
	editor := s.user(t, "editor", editClusters, joinAny)
	settled(t, func() error { return patch(editor, "guarded", `{"metadata":{"labels":{"a":"b"}}}`) })
	err := patch(editor, "guarded", `{"spec":{"hubAcceptsClient":true}}`)
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	acceptor := s.user(t, "acceptor", editClusters, joinAny, acceptAny)
	settled(t, func() error { return patch(acceptor, "guarded", `{"spec":{"hubAcceptsClient":true}}`) })
	err = patch(editor, "guarded", `{"spec":{"hubAcceptsClient":false}}`)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.NoError(t, patch(editor, "guarded", `{"metadata":{"labels":{"a":"c"}}}`), "an unrelated change needs nothing more")
	require.NoError(t, patch(acceptor, "guarded", `{"spec":{"hubAcceptsClient":false}}`))
}

func TestMovingBetweenSetsNeedsBoth(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, create(s.dyn, cluster("mover")))
	one := s.user(t, "joiner-one", editClusters, joinSet("one"))
	settled(t, func() error { return patch(one, "mover", `{"metadata":{"labels":{"a":"b"}}}`) })
	err := patch(one, "mover", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"one"}}}`)
	require.True(t, apierrors.IsForbidden(err), "the set default is left, too: %v", err)
	both := s.user(t, "joiner-both", editClusters, joinSet("one"), joinSet("default"))
	settled(t, func() error {
		return patch(both, "mover", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"one"}}}`)
	})
	require.NoError(t, patch(both, "mover", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":null}}}`))
	require.Equal(t, "default", s.get(t, "mover").Labels[clusterv1.LabelClusterSet], "a cluster is never without a set")
}

func TestABootstrapTokenJoinsTheDefaultSetOnly(t *testing.T) {
	s := sharedHub(t)
	dyn, _ := s.bootstrap(t)
	mc := cluster("chooser")
	mc.Labels = map[string]string{clusterv1.LabelClusterSet: "other"}
	err := create(dyn, mc)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestAForeignNamespaceIsOnlyTakenOverByWhoMayUpdateIt(t *testing.T) {
	s := sharedHub(t)
	ctx := context.Background()
	_, err := s.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "payroll"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, create(s.dyn, cluster("payroll")))
	stranger := s.user(t, "stranger", editClusters, joinAny, acceptAny)
	settled(t, func() error { return patch(stranger, "payroll", `{"metadata":{"labels":{"a":"b"}}}`) })
	err = patch(stranger, "payroll", `{"spec":{"hubAcceptsClient":true}}`)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "already exists")
	err = patch(
		stranger, "payroll",
		`{"spec":{"hubAcceptsClient":true},"metadata":{"annotations":{"registration.open-cluster-management.io/adopted-namespace":"x"}}}`,
	)
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	s.accept(t, "payroll", true)
	s.await(t, "payroll", "is accepted by who may update the namespace", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
	ns, err := s.kube.CoreV1().Namespaces().Get(ctx, "payroll", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "payroll", ns.Labels[clusterv1.LabelClusterName])
}

func TestATerminatingNamespaceIsWaitedFor(t *testing.T) {
	s := sharedHub(t)
	ctx := context.Background()
	_, err := s.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ending-space", Labels: map[string]string{clusterv1.LabelClusterName: "ending-space"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.kube.CoreV1().ConfigMaps("ending-space").Create(
		ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	require.NoError(t, s.kube.CoreV1().Namespaces().Delete(ctx, "ending-space", metav1.DeleteOptions{}))
	require.NoError(t, create(s.dyn, cluster("ending-space")))
	err = patch(s.dyn, "ending-space", `{"spec":{"hubAcceptsClient":true}}`)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "terminating")
	_, err = s.kube.CoreV1().ConfigMaps("ending-space").Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	settled(t, func() error { return patch(s.dyn, "ending-space", `{"spec":{"hubAcceptsClient":true}}`) })
	s.await(t, "ending-space", "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
}

func TestAnAgentChangesOnlyWhatIsItsOwn(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "own1", "a")
	s.register(t, "own10", "a")
	a.report(t, "own1", metav1.ConditionTrue)
	update := func(name string, change func(*clusterv1.ManagedCluster)) error {
		mc := s.get(t, name)
		change(mc)
		u, err := toUnstructured(mc)
		require.NoError(t, err)
		_, err = a.dyn.Resource(clusters).Update(context.Background(), u, metav1.UpdateOptions{})
		return err
	}
	retry := func(name string, change func(*clusterv1.ManagedCluster)) (err error) {
		eventually(func() bool { err = update(name, change); return !apierrors.IsConflict(err) })
		return err
	}
	for what, change := range map[string]func(*clusterv1.ManagedCluster){
		"labels":     func(mc *clusterv1.ManagedCluster) { mc.Labels["feature"] = "gold" },
		"its set":    func(mc *clusterv1.ManagedCluster) { mc.Labels[clusterv1.LabelClusterSet] = "other" },
		"acceptance": func(mc *clusterv1.ManagedCluster) { mc.Spec.HubAcceptsClient = false },
		"taints": func(mc *clusterv1.ManagedCluster) {
			mc.Spec.Taints = append(mc.Spec.Taints, clusterv1.Taint{Key: "k", Effect: "NoSelect"})
		},
		"finalizers": func(mc *clusterv1.ManagedCluster) { mc.Finalizers = nil },
		"owners": func(mc *clusterv1.ManagedCluster) {
			mc.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}
		},
		"annotations": func(mc *clusterv1.ManagedCluster) { mc.Annotations[clusterv1.AnnotationAgentName] = "b" },
	} {
		t.Run(what, func(t *testing.T) {
			err := retry("own1", change)
			require.True(t, apierrors.IsForbidden(err) || apierrors.IsBadRequest(err), "%v", err)
		})
	}
	require.NoError(t, retry("own1", func(mc *clusterv1.ManagedCluster) {
		mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://own1.example:6443"}}
		mc.Annotations[clusterv1.AnnotationPrefixAgent+"/region"] = "north"
	}))
	err := update("own10", func(*clusterv1.ManagedCluster) {})
	require.True(t, apierrors.IsForbidden(err), "the cluster whose name begins the same is another one: %v", err)
	_, err = a.kube.CoordinationV1().Leases("own10").Get(context.Background(), clusterv1.LeaseName, metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = a.kube.CoordinationV1().Leases("own1").Get(context.Background(), "another", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "the lease is reached by its name only: %v", err)
}

func TestTheHubCanPatchAClusterWithoutASet(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, create(s.dyn, cluster("unlabelled")))
	// A user who may not join sets updates a cluster from before admission: nothing is
	// added to it, and nothing is refused.
	s.exempt(t, func() {
		settled(t, func() error {
			if err := patch(s.dyn, "unlabelled", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":null}}}`); err != nil {
				return err
			}
			if s.get(t, "unlabelled").Labels[clusterv1.LabelClusterSet] != "" {
				return errors.New("admission still stands")
			}
			return nil
		})
	})
	editor := s.user(t, "poor-editor", editClusters)
	settled(t, func() error { return patch(editor, "unlabelled", `{"metadata":{"annotations":{"a":"a"}}}`) })
	require.Empty(t, s.get(t, "unlabelled").Labels[clusterv1.LabelClusterSet])
	own, _ := clients(t, s.As(t, hub.Namespace, hub.Name))
	settled(t, func() error {
		if err := patch(own, "unlabelled", `{"metadata":{"annotations":{"a":"b"}}}`); err != nil {
			return err
		}
		if s.get(t, "unlabelled").Labels[clusterv1.LabelClusterSet] != "default" {
			return errors.New("admission is not restored")
		}
		return nil
	})
}

// exempt runs f while admission is removed and no hub process restores it.
func (s *scene) exempt(t testing.TB, f func()) {
	t.Helper()
	ctx := context.Background()
	s.scale(t, 0)
	require.NoError(t, s.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, s.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	f()
	s.scale(t, 1)
	soon(t, func() bool {
		list, err := s.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 1
	}, "the hub makes its admission again")
	s.awaitHub(t)
}

// scale changes the number of hub processes, and waits until that many work and Services
// lead to exactly these.
func (s *scene) scale(t testing.TB, replicas int32) {
	t.Helper()
	ctx := context.Background()
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := s.kube.AppsV1().Deployments(hub.Namespace).Patch(ctx, hub.Name, types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
	var ready []string
	var routed map[string][]string
	soon(t, func() bool {
		pods, err := s.kube.CoreV1().Pods(hub.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + hub.Name})
		d, also := s.kube.AppsV1().Deployments(hub.Namespace).Get(ctx, hub.Name, metav1.GetOptions{})
		if err != nil || also != nil {
			return false
		}
		ready = nil
		for i := range pods.Items {
			if p := &pods.Items[i]; p.DeletionTimestamp == nil && podReady(p) {
				ready = append(ready, p.Status.PodIP)
			}
		}
		slices.Sort(ready)
		routed = s.routed(t)
		return len(
			pods.Items,
		) == int(replicas) && len(ready) == int(replicas) && d.Status.AvailableReplicas == replicas && d.Status.ObservedGeneration >= d.Generation &&
			!slices.ContainsFunc(slices.Collect(maps.Values(routed)), func(to []string) bool { return !slices.Equal(to, ready) })
	}, "the hub has no %d processes that are asked: ready %v, routed %v", replicas, &ready, &routed)
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// routed returns the sorted addresses to which each Service of the hub leads.
func (s *scene) routed(t testing.TB) map[string][]string {
	t.Helper()
	list, err := s.kube.DiscoveryV1().EndpointSlices(hub.Namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string][]string{}
	for _, slice := range list.Items {
		service := slice.Labels[discoveryv1.LabelServiceName]
		out[service] = append(out[service], []string{}...)
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				out[service] = append(out[service], e.Addresses...)
			}
		}
	}
	for _, to := range out {
		slices.Sort(to)
	}
	return out
}
