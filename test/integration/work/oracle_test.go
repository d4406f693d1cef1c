// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

const (
	// perStep is how many requests the agent sends for one step of a walk at most, with a death, a
	// restart and bad weather in it: retries that do not pause send thousands.
	perStep = 100
	// heap is how much memory the agent and all tests beside it hold at the end of a walk at most.
	heap = 128 << 20
)

// questions are what somebody may do in a namespace or, without one, in the whole cluster: what a
// leak of rights would open first.
var questions = []string{
	"get secrets", "create serviceaccounts/token", "create pods", "create configmaps", "delete namespaces",
	"create clusterrolebindings.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io", "impersonate users",
	"patch manifestworks.work.open-cluster-management.io", "patch appliedmanifestworks.work.open-cluster-management.io",
}

// attributes returns a question in the form of a SubjectAccessReview.
func attributes(question, namespace string) map[string]any {
	verb, of, _ := strings.Cut(question, " ")
	of, group, _ := strings.Cut(of, ".")
	resource, subresource, _ := strings.Cut(of, "/")
	return map[string]any{"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace}
}

// identity is somebody whose rights are compared.
type identity struct {
	user   string
	groups []string
}

// agentOf returns the identity of the agent of a cluster on the hub.
func agentOf(cluster string) identity {
	group := "system:open-cluster-management:" + cluster
	return identity{group + ":agent", []string{group, "system:open-cluster-management:managed-clusters", "system:authenticated"}}
}

// access returns what a fixed set of identities may do on both clusters.
func (s *scene) access() (out []string) {
	anybody := identity{"system:serviceaccount:default:default", []string{"system:serviceaccounts", "system:authenticated"}}
	nobody := identity{"system:anonymous", []string{"system:unauthenticated"}}
	for _, side := range []struct {
		name   string
		client dynamic.Interface
		own    string
		who    []identity
	}{
		{"hub", s.hub, s.cluster, []identity{agentOf(s.cluster), agentOf("another"), anybody, nobody}},
		{"spoke", s.spoke, s.namespace, []identity{{user: agentUser}, anybody, nobody}},
	} {
		for _, who := range side.who {
			for _, question := range questions {
				for _, namespace := range []string{side.own, ""} {
					if mayAs(s.t, side.client, who, attributes(question, namespace)) {
						out = append(out, fmt.Sprintf("%s: %s may %s in %q", side.name, who.user, question, namespace))
					}
				}
			}
		}
	}
	return out
}

// settledAccess returns it once the authorizers know of all roles of the scene.
func (s *scene) settledAccess() (out []string) {
	s.t.Helper()
	s.eventually(func() bool {
		before := out
		out = s.access()
		return slices.Equal(before, out) &&
			mayAs(s.t, s.hub, agentOf(s.cluster), attributes("patch manifestworks.work.open-cluster-management.io", s.cluster))
	}, "the rights of the agent do not count")
	return out
}

// bounded requires that nobody has gained access, and that memory and requests stayed within
// bounds, after a walk of some steps.
func (w *walk) bounded(t testing.TB, access []string, requests int, steps int64) {
	t.Helper()
	require.Subset(t, access, w.access(), "somebody has gained access")
	require.LessOrEqual(t, requests, perStep*int(steps+1), "the agent has sent too many requests in %d steps", steps)
	runtime.GC()
	var used runtime.MemStats
	runtime.ReadMemStats(&used)
	require.Less(t, used.HeapAlloc, uint64(heap), "the process holds %s", memory.MiB(int64(used.HeapAlloc)))
}
