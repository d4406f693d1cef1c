// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestSettingsOfAHub runs a hub with settings other than the defaults, with certificates
// that live for half a minute.
func TestSettingsOfAHub(t *testing.T) {
	t.Parallel()
	s := newScene(t, harness.WithNode(t, "hub", images(t), harness.SigningDuration(25*time.Second)))
	s.install(t)
	s.awaitHub(t)
	t.Run("a cluster that is away for longer than its certificate lives is no longer joined", func(t *testing.T) { s.testExpiry(t) })
	s.arguments(t, "run", "--labels=team=a", "--enable-sync-labels", "--manifestLimit=1000",
		"--gc-resource-list=manifestworks,networking.k8s.io/v1/networkpolicies,example.com/v1/things,work.open-cluster-management.io/v1/manifestworks")
	t.Run("works are checked by the limit and the gate that were chosen", func(t *testing.T) { s.testWorkAdmission(t) })
	t.Run("what is removed with a cluster can be chosen", func(t *testing.T) { s.testOrder(t) })
	t.Run("labels are on the objects of clusters, and on nothing else's", func(t *testing.T) { s.testLabels(t) })
	t.Run("accepting costs no conflict", func(t *testing.T) { s.testConflicts(t) })
	t.Run("without its gate nothing is removed with a cluster", func(t *testing.T) { s.testNoCleanup(t) })
	t.Run("certificates are renewed while admission answers", func(t *testing.T) { s.testRotation(t) })
	t.Run("the last cluster takes the shared roles along", func(t *testing.T) { s.testLast(t) })
}

// arguments restarts the hub with other arguments.
func (s *scene) arguments(t testing.TB, args ...string) {
	t.Helper()
	ctx := context.Background()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": hub.Name, "args": args}},
	}}}})
	require.NoError(t, err)
	before := hubPID(t, s)
	s.scale(t, 0)
	_, err = s.kube.AppsV1().Deployments(hub.Namespace).Patch(ctx, hub.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
	s.scale(t, 1)
	require.NotEqual(t, before, hubPID(t, s))
	s.awaitHub(t)
}

// manage merges a change into the ClusterManager.
func (s *scene) manage(t testing.TB, body string) {
	t.Helper()
	_, err := s.dyn.Resource(managers).Patch(context.Background(), hub.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

func (s *scene) testExpiry(t *testing.T) {
	s.register(t, "expiring", "a")
	a := &agent{dyn: s.dyn, kube: s.kube} // its own certificate may have ended on a busy machine
	a.renew(t, "expiring", 0)
	a.report(t, "expiring", metav1.ConditionTrue)
	s.brief(t, "expiring")
	mc := s.await(t, "expiring", "is away", isAway)
	end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
	require.NoError(t, err)
	joined := conditionIs(clusterv1.ConditionJoined, metav1.ConditionTrue, "")
	for joined(s.get(t, "expiring")) && time.Now().Before(end.Add(patience)) {
		<-time.After(tick)
	}
	require.False(t, time.Now().Before(end), "its certificate still lives")
	require.True(t, conditionIs(clusterv1.ConditionJoined, metav1.ConditionFalse, clusterv1.ReasonCertificateExpired)(s.get(t, "expiring")))
	s.ends(t, "expiring")
}

// ends deletes a cluster and waits until it is gone.
func (s *scene) ends(t testing.TB, name string) {
	t.Helper()
	require.NoError(t, s.dyn.Resource(clusters).Delete(context.Background(), name, metav1.DeleteOptions{}))
	s.await(t, name, "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
}

// labelsOf returns the labels of the objects that a cluster has on the hub.
func (s *scene) labelsOf(t testing.TB, name string) map[string]map[string]string {
	t.Helper()
	ctx := context.Background()
	out := map[string]map[string]string{}
	note := func(what string, o metav1.Object, err error) {
		require.NoError(t, err)
		out[what] = o.GetLabels()
		delete(out[what], "kubernetes.io/metadata.name")
	}
	ns, err := s.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	note("namespace", ns, err)
	for _, role := range []string{clusterv1.RolePrefixManagedCluster + name, clusterv1.RoleRegistration, clusterv1.RoleWork} {
		r, err := s.kube.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{})
		note(role, r, err)
	}
	b, err := s.kube.RbacV1().ClusterRoleBindings().Get(ctx, clusterv1.RolePrefixManagedCluster+name, metav1.GetOptions{})
	note("clusterrolebinding", b, err)
	for _, suffix := range []string{clusterv1.RoleBindingSuffixRegistration, clusterv1.RoleBindingSuffixWork} {
		b, err := s.kube.RbacV1().RoleBindings(name).Get(ctx, clusterv1.RolePrefixManagedCluster+name+suffix, metav1.GetOptions{})
		note(suffix, b, err)
	}
	return out
}

func (s *scene) testLabels(t *testing.T) {
	s.serves(t, "labelled")
	s.serves(t, "other")
	all := func(cluster string, extra map[string]string) func() bool {
		return func() bool {
			for what, labels := range s.labelsOf(t, cluster) {
				owner := cluster
				if what == clusterv1.RoleRegistration || what == clusterv1.RoleWork {
					owner = ""
				}
				if len(labels) != len(extra)+1 || labels[clusterv1.LabelClusterName] != owner {
					return false
				}
				for key, value := range extra {
					if labels[key] != value {
						return false
					}
				}
			}
			return true
		}
	}
	require.True(t, eventually(all("labelled", map[string]string{"team": "a"})), "%v", s.labelsOf(t, "labelled"))
	s.manage(t, `{"metadata":{"labels":{"stage":"prod","app":"x","team":"b"}}}`)
	require.True(t, eventually(all("labelled", map[string]string{"team": "a", "stage": "prod"})), "%v", s.labelsOf(t, "labelled"))
	require.True(t, eventually(all("other", map[string]string{"team": "a", "stage": "prod"})), "%v", s.labelsOf(t, "other"))
	s.manage(t, `{"metadata":{"labels":{"stage":null,"app":null,"team":null}}}`)
	require.True(t, eventually(all("labelled", map[string]string{"team": "a"})), "%v", s.labelsOf(t, "labelled"))

	// Denying one cluster after accepting another one changes no labels.
	s.accept(t, "labelled", false)
	s.await(t, "labelled", "is denied", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionFalse, ""))
	role, err := s.kube.RbacV1().ClusterRoles().Get(t.Context(), clusterv1.RolePrefixManagedCluster+"labelled", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"team": "a", clusterv1.LabelClusterName: "labelled"}, role.Labels)
	s.ends(t, "labelled")
	s.ends(t, "other")
}

func (s *scene) testOrder(t *testing.T) {
	ctx := context.Background()
	s.serves(t, "chosen")
	s.addon(t, "chosen", "kept")
	s.work(t, "chosen", "w", -1)
	policies := s.kube.NetworkingV1().NetworkPolicies("chosen")
	_, err := policies.Create(ctx, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, "chosen", metav1.DeleteOptions{}))
	mc := s.await(t, "chosen", "reports what it may not do", conditionIs(clusterv1.ConditionDeleting, metav1.ConditionFalse, clusterv1.ReasonDeletingError))
	require.Contains(t, findCondition(mc, clusterv1.ConditionDeleting).Message, "networkpolicies")
	going, _ := s.deleting(t, works, "chosen")
	require.Empty(t, going, "what comes later waits")

	role, err := s.kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "hub-policies"}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"networking.k8s.io"},
			Resources: []string{"networkpolicies"},
			Verbs:     []string{"get", "list", "delete"},
		},
		// The API server checks rights first, even for resources it does not know.
		{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"list"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hub.Namespace, Name: hub.Name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	// The loop retries within a minute.
	soon(t, func() bool {
		going, _ = s.deleting(t, works, "chosen")
		return slices.Equal(going, []string{"w"})
	}, "%v", &going)
	_, err = policies.Get(ctx, "p", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	s.letGo(t, works, "chosen", "w")
	s.await(t, "chosen", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
	_, err = s.dyn.Resource(addons).Namespace("chosen").Get(ctx, "kept", metav1.GetOptions{})
	require.NoError(t, err, "add-ons are not on the list")
}

// conflicts counts the refused writes of clusters.
func (s *scene) conflicts(t testing.TB) int {
	t.Helper()
	raw, err := s.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `code="409"`) && strings.Contains(line, `resource="managedclusters"`) {
			more, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
			require.NoError(t, err)
			n += more
		}
	}
	return n
}

// testConflicts accepts clusters until one is accepted without a conflict: a write based
// on a stale cache may be refused now and then, but not always.
func (s *scene) testConflicts(t *testing.T) {
	for i := range 10 {
		before, name := s.conflicts(t), fmt.Sprintf("calm%d", i)
		s.serves(t, name)
		after := s.conflicts(t)
		s.ends(t, name)
		if after == before {
			return
		}
		t.Logf("accepting %s cost %d conflicts", name, after-before)
	}
	t.Error("accepting a cluster always costs a conflict")
}

func (s *scene) testNoCleanup(t *testing.T) {
	ctx := context.Background()
	s.serves(t, "unclean")
	s.manage(t, `{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"ResourceCleanup","mode":"Disable"}]}}}`)
	s.await(t, "unclean", "is no longer held for it", func(mc *clusterv1.ManagedCluster) bool {
		return len(mc.Finalizers) == 1 && mc.Finalizers[0] == clusterv1.FinalizerAPIResourceCleanup
	})
	s.addon(t, "unclean", "kept")
	s.work(t, "unclean", "w", -1)
	require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, "unclean", metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool { return !s.hasRole(clusterv1.RolePrefixManagedCluster + "unclean") }))
	never(t, func() bool {
		going, _ := s.deleting(t, works, "unclean")
		return len(going) > 0 || s.get(t, "unclean") == nil
	}, 2*time.Second)
	s.letGo(t, works, "unclean", "w")
	require.NoError(t, s.dyn.Resource(works).Namespace("unclean").Delete(ctx, "w", metav1.DeleteOptions{}))
	s.await(t, "unclean", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
	_, err := s.dyn.Resource(addons).Namespace("unclean").Get(ctx, "kept", metav1.GetOptions{})
	require.NoError(t, err)
	s.manage(t, `{"spec":{"registrationConfiguration":null}}`)
}

func (s *scene) testLast(t *testing.T) {
	s.serves(t, "last1")
	s.serves(t, "last2")
	s.ends(t, "last1")
	require.True(t, s.hasRole(clusterv1.RoleRegistration) && s.hasRole(clusterv1.RoleWork))
	s.ends(t, "last2")
	require.True(t, eventually(func() bool { return !s.hasRole(clusterv1.RoleRegistration) && !s.hasRole(clusterv1.RoleWork) }))
}
