// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// anybody lists what every authenticated user may do: requests about itself.
var anybody = []string{
	"create authentication.k8s.io/selfsubjectreviews all",
	"create authorization.k8s.io/selfsubjectaccessreviews all",
	"create authorization.k8s.io/selfsubjectrulesreviews all",
}

// agentRights lists all that the agent of a cluster may do on the hub. Nothing of it
// applies to another cluster except for certificate requests, which have no namespace:
// any agent can read them, and approval checks who requests what.
var agentRights = append([]string{
	"create /events own", "patch /events own", "update /events own",
	"create events.k8s.io/events own", "patch events.k8s.io/events own", "update events.k8s.io/events own",
	"create certificates.k8s.io/certificatesigningrequests all", "list certificates.k8s.io/certificatesigningrequests all",
	"watch certificates.k8s.io/certificatesigningrequests all",
	"get certificates.k8s.io/certificatesigningrequests own", "get certificates.k8s.io/certificatesigningrequests other",
	"get cluster.open-cluster-management.io/managedclusters own", "update cluster.open-cluster-management.io/managedclusters own",
	"patch cluster.open-cluster-management.io/managedclusters/status own", "update cluster.open-cluster-management.io/managedclusters/status own",
	"get coordination.k8s.io/leases own", "update coordination.k8s.io/leases own",
	"get addon.open-cluster-management.io/managedclusteraddons own", "list addon.open-cluster-management.io/managedclusteraddons own",
	"watch addon.open-cluster-management.io/managedclusteraddons own",
	"patch addon.open-cluster-management.io/managedclusteraddons/status own", "update addon.open-cluster-management.io/managedclusteraddons/status own",
	"get work.open-cluster-management.io/manifestworks own", "list work.open-cluster-management.io/manifestworks own",
	"watch work.open-cluster-management.io/manifestworks own", "update work.open-cluster-management.io/manifestworks own",
	"patch work.open-cluster-management.io/manifestworks own",
	"patch work.open-cluster-management.io/manifestworks/status own", "update work.open-cluster-management.io/manifestworks/status own",
}, anybody...)

// attempt is one request, as "verb group/resource target".
type attempt struct {
	what, method, path string
	watch              bool
}

// sensitive are the API groups of Kubernetes that allow an attacker to get further.
var sensitive = []string{"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
	"authorization.k8s.io", "batch", "certificates.k8s.io", "coordination.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io"}

// attempts returns all verbs on all kinds of Open Cluster Management and of the sensitive
// groups, in the namespaces of both clusters, on cluster-scoped objects of both names,
// and across all namespaces.
func (s *scene) attempts(t testing.TB, own, other string) []attempt {
	t.Helper()
	_, lists, err := s.kube.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	var out []attempt
	for _, list := range lists {
		root := "/apis/" + list.GroupVersion
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		if !grouped {
			root, group = "/api/"+list.GroupVersion, ""
		}
		if !strings.HasSuffix(group, "open-cluster-management.io") && !slices.Contains(sensitive, group) {
			continue
		}
		for _, r := range list.APIResources {
			for target, name := range map[string]string{"own": own, "other": other} {
				out = append(out, attemptsOn(r, root, group+"/"+r.Name, target, name)...)
			}
		}
	}
	require.Greater(t, len(out), 1000, "the hub serves much")
	return out
}

func attemptsOn(r metav1.APIResource, root, what, target, name string) []attempt {
	resource, sub, _ := strings.Cut(r.Name, "/")
	collection, object, everywhere := root+"/"+resource, root+"/"+resource+"/"+name, "all"
	if r.Namespaced {
		item := "x"
		if resource == "leases" {
			item = clusterv1.LeaseName
		}
		collection, everywhere = root+"/namespaces/"+name+"/"+resource, target
		object = collection + "/" + item
	}
	try := func(verb, target, method, path string) attempt {
		return attempt{what: verb + " " + what + " " + target, method: method, path: path, watch: verb == "watch"}
	}
	named := func(suffix string) []attempt {
		return []attempt{
			try("get", target, http.MethodGet, object+suffix), try("update", target, http.MethodPut, object+suffix),
			try("patch", target, http.MethodPatch, object+suffix), try("delete", target, http.MethodDelete, object+suffix),
		}
	}
	if sub != "" {
		return append(named("/"+sub), try("create", target, http.MethodPost, object+"/"+sub))
	}
	out := append(named(""),
		try("list", everywhere, http.MethodGet, collection), try("watch", everywhere, http.MethodGet, collection),
		try("create", everywhere, http.MethodPost, collection), try("deletecollection", everywhere, http.MethodDelete, collection))
	if r.Namespaced {
		out = append(out, try("list", "all", http.MethodGet, root+"/"+resource), try("watch", "all", http.MethodGet, root+"/"+resource))
	}
	return out
}

// allowed makes the attempts and returns those that authorization allowed, whatever their
// result.
func allowed(t testing.TB, kube kubernetes.Interface, attempts []attempt) []string {
	t.Helper()
	client := kube.Discovery().RESTClient()
	codes := make([]int, len(attempts))
	try := func(i int) {
		a := attempts[i]
		request := client.Verb(a.method).AbsPath(a.path)
		switch {
		case a.watch:
			request = request.Param("watch", "true").Param("timeoutSeconds", "1")
		case a.method == http.MethodPatch:
			request = request.SetHeader("Content-Type", "application/merge-patch+json").Body([]byte("[]"))
		case a.method == http.MethodPost, a.method == http.MethodPut:
			request = request.SetHeader("Content-Type", "application/json").Body([]byte("{}"))
		}
		// An answer that the API server is busy does not count.
		for range 10 {
			_ = request.Do(context.Background()).StatusCode(&codes[i])
			if !slices.Contains([]int{0, http.StatusTooManyRequests, http.StatusGatewayTimeout}, codes[i]) {
				break
			}
		}
	}
	// Allowed watches take one second.
	var running sync.WaitGroup
	const workers = 8
	for worker := range workers {
		running.Go(func() {
			for i := worker; i < len(attempts); i += workers {
				try(i)
			}
		})
	}
	running.Wait()
	var out []string
	for i, a := range attempts {
		require.NotZero(t, codes[i], "%s got no answer", a.what)
		require.NotEqual(t, http.StatusUnauthorized, codes[i], a.what)
		if codes[i] != http.StatusForbidden && !slices.Contains(out, a.what) {
			out = append(out, a.what)
		}
	}
	return out
}

// requireRights fails unless the user of a client may do exactly what is listed.
func requireRights(t testing.TB, want []string, kube kubernetes.Interface, attempts []attempt) {
	t.Helper()
	got := allowed(t, kube, attempts)
	want = slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	require.Empty(t, cmp.Diff(want, got))
}

// as returns a client that impersonates a user with these groups.
func (s *scene) as(t testing.TB, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	_, kube := clients(t, config)
	return kube
}

// The agents of prod1 and prod10 have no rights on each other's cluster: all verbs on all
// kinds that matter, with real certificates.
func TestTheRightsOfAnAgentEndAtItsOwnCluster(t *testing.T) {
	s := sharedHub(t)
	one, ten := s.register(t, "matrix1", "a"), s.register(t, "matrix10", "a")
	there, back := s.attempts(t, "matrix1", "matrix10"), s.attempts(t, "matrix10", "matrix1")
	requireRights(t, agentRights, one.kube, there)
	requireRights(t, agentRights, ten.kube, back)

	// An agent may list and watch clusters only with a selector for its own name.
	for name, want := range map[string]int{"matrix1": http.StatusOK, "matrix10": http.StatusForbidden} {
		var code int
		_ = one.kube.Discovery().RESTClient().Get().AbsPath("/apis/cluster.open-cluster-management.io/v1/managedclusters").
			Param("fieldSelector", "metadata.name="+name).Do(context.Background()).StatusCode(&code)
		require.Equal(t, want, code, name)
	}

	t.Run("an agent that came in by an EKS access entry", func(t *testing.T) {
		requireRights(t, agentRights, s.as(t, "matrix1", "open-cluster-management:matrix1"), there)
	})
	// CVE-2024-56513: the group that all agents share grants nothing.
	t.Run("the group of all agents alone", func(t *testing.T) {
		requireRights(t, anybody, s.as(t, "eve", clusterv1.GroupManagedClusters), there)
	})
	t.Run("a name that only begins like the cluster's", func(t *testing.T) {
		requireRights(
			t, anybody,
			s.as(t, clusterv1.UserPrefix+"matrix:a", clusterv1.UserPrefix+"matrix", clusterv1.UserPrefix+"matrix1:", clusterv1.UserPrefix+"matrix1 "),
			there,
		)
	})
}

// CVE-2023-32199: access ends with what it was granted for.
func TestCVE202332199AccessEndsWithTheAcceptance(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "revoked1", "a")
	s.register(t, "revoked10", "a")
	attempts := s.attempts(t, "revoked1", "revoked10")
	await := func(code int, path string) {
		t.Helper()
		settled(t, func() error {
			var got int
			_ = a.kube.Discovery().RESTClient().Get().AbsPath(path).Do(context.Background()).StatusCode(&got)
			if got != code {
				return fmt.Errorf("%s is answered with %d", path, got)
			}
			return nil
		})
	}
	s.accept(t, "revoked1", false)
	s.await(t, "revoked1", "is denied", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied))
	await(http.StatusForbidden, "/apis/certificates.k8s.io/v1/certificatesigningrequests")
	await(http.StatusForbidden, "/apis/work.open-cluster-management.io/v1/namespaces/revoked1/manifestworks")
	await(http.StatusForbidden, "/apis/coordination.k8s.io/v1/namespaces/revoked1/leases/"+clusterv1.LeaseName)
	requireRights(t, append([]string{"get cluster.open-cluster-management.io/managedclusters own"}, anybody...), a.kube, attempts)

	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), "revoked1", metav1.DeleteOptions{}))
	s.await(t, "revoked1", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
	await(http.StatusForbidden, "/apis/cluster.open-cluster-management.io/v1/managedclusters/revoked1")
	requireRights(t, anybody, a.kube, attempts)
	roles, err := s.kube.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName + "=revoked1"})
	require.NoError(t, err)
	require.Empty(t, roles.Items)
}
