// SPDX-License-Identifier: Apache-2.0

//go:build perf

package scale

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// The renewals that are measured for each number of bindings, of how many leases, and how many are
// sent at a time.
const renewals, leases, atOnce = 4000, 64, 16

// TestTheAPIServerAlone measures what one renewal of a lease costs kube-apiserver with as many
// ClusterRoleBindings as a fleet has clusters, without a hub and without agents. With -out it writes
// the table there.
func TestTheAPIServerAlone(t *testing.T) {
	c := harness.ControlPlane(t, "alone", func(c *playground.Config) { c.Env = []string{"GOGC=100"} })
	admin := *c.Config
	admin.QPS = -1
	kube, err := kubernetes.NewForConfig(&admin)
	require.NoError(t, err)
	agent := tenant(t, c, kube)
	state, err := playground.Inspect(c.Playground.Dir)
	require.NoError(t, err)
	pid := state.PID(c.Playground.Dir, playground.APIServer)

	lines := []string{"bindings,cpu_ms_of_a_renewal,renewals_a_second"}
	have := 0
	for _, total := range []int{0, 1000, 2500, 5000, 10000} {
		together(t, total-have, func(ctx context.Context, i int) error {
			return bind(ctx, kube, have+i)
		})
		have = total
		awaitBinding(t, kube, total-1)
		before, err := budget.CPUTimeOf(pid)
		require.NoError(t, err)
		began := time.Now()
		together(t, renewals, func(ctx context.Context, i int) error {
			_, err := agent.CoordinationV1().Leases("agent").Patch(ctx, leaseName(i), types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro)), metav1.PatchOptions{})
			return err
		})
		took := time.Since(began)
		after, err := budget.CPUTimeOf(pid)
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%d,%.2f,%.0f", total, float64((after-before).Microseconds())/1000/renewals, renewals/took.Seconds()))
		t.Log(lines[len(lines)-1])
	}
	if *out != "" {
		require.NoError(t, os.MkdirAll(*out, 0o750))
		require.NoError(t, os.WriteFile(*out+"/alone.csv", []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
}

func together(t *testing.T, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	require.NoError(t, group.Wait())
}

// tenant returns a client that may renew leases, as an agent may: by a role in its namespace.
func tenant(t *testing.T, c *harness.Cluster, kube kubernetes.Interface) kubernetes.Interface {
	t.Helper()
	as := c.As(t, "agent", "agent")
	as.QPS = -1
	_, err := kube.RbacV1().Roles("agent").Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "lease"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"patch"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = kube.RbacV1().RoleBindings("agent").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "lease"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lease"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "agent", Name: "agent"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for i := range leases {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName(i)}}
		_, err = kube.CoordinationV1().Leases("agent").Create(t.Context(), lease, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	client, err := kubernetes.NewForConfig(rest.CopyConfig(as))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := client.CoordinationV1().Leases("agent").Patch(t.Context(), leaseName(0), types.MergePatchType, []byte(`{"spec":{}}`), metav1.PatchOptions{})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return client
}

func leaseName(i int) string { return fmt.Sprintf("renewed-%d", i%leases) }

func clusterGroup(i int) string { return fmt.Sprintf("system:open-cluster-management:c-%05d", i) }

// bind makes the role and the binding that a hub makes for a cluster.
func bind(ctx context.Context, kube kubernetes.Interface, i int) error {
	name := fmt.Sprintf("c-%05d", i)
	_, err := kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{name}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: clusterGroup(i)}},
	}, metav1.CreateOptions{})
	return err
}

// awaitBinding waits until the API server authorizes by a binding.
func awaitBinding(t *testing.T, kube kubernetes.Interface, i int) {
	t.Helper()
	if i < 0 {
		return
	}
	require.Eventually(t, func() bool {
		asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "one", Groups: []string{clusterGroup(i)},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: corev1.NamespaceDefault, Verb: "get", Resource: "pods", Name: fmt.Sprintf("c-%05d", i),
			},
		}}
		review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), asked, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	}, time.Minute, 100*time.Millisecond)
}
