// SPDX-License-Identifier: Apache-2.0

package work

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKindsAreWrittenInTheirOrderAndRemovedTheOtherWayRound has one kind of each rank in
// a work, in the wrong order.
func TestKindsAreWrittenInTheirOrderAndRemovedTheOtherWayRound(t *testing.T) {
	s := newScene(t)
	grantPolicies(s)
	s.start()
	name := "order-" + s.namespace
	manifests := []string{ // highest rank first
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"k","namespace":"NS"},
			"spec":{"defaultBackend":{"service":{"name":"k","port":{"number":80}}}}}`,
		replace(kindCases["ValidatingAdmissionPolicyBinding"].manifest, "CLUSTER", name),
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"k","namespace":"NS"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},
			"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
		kindCases["Service"].manifest, configMap("k", "a", "1"), kindCases["ServiceAccount"].manifest, kindCases["Role"].manifest,
		`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"` + name + `"},"value":1}`,
	}
	order := []string{"priorityclasses", "roles", "serviceaccounts", "configmaps", "services", "deployments", "validatingadmissionpolicybindings", "ingresses"}
	s.create("web", append(slices.Clone(manifests), configMap("stays", "a", "1")))
	s.ready("web")
	require.Equal(t, order, s.firstOf("PATCH", order))
	s.update("web", s.manifests(configMap("stays", "a", "1")))
	s.ready("web")
	s.eventually(func() bool { return len(s.applied("web").Status.AppliedResources) == 1 }, "what is declared no more is still there")
	slices.Reverse(order)
	require.Equal(t, order, s.firstOf("DELETE", order))
}

// grantPolicies gives the agent the right to write admission policies.
func grantPolicies(s *scene) {
	s.t.Helper()
	s.aggregate("policies-for-works", `[{"apiGroups":["admissionregistration.k8s.io"],"resources":["validatingadmissionpolicies"],"verbs":["*"]},
		{"apiGroups":["admissionregistration.k8s.io"],"resources":["validatingadmissionpolicybindings"],"verbs":["*"]}]`)
}

// firstOf returns the resources in the order in which the agent first sent a write with
// this method for each on the managed cluster.
func (s *scene) firstOf(method string, resources []string) []string {
	var out []string
	for _, r := range s.sent.Seen() {
		path, ok := strings.CutPrefix(r, "spoke "+method+" ")
		if !ok {
			continue
		}
		for _, resource := range resources {
			if strings.Contains(path, "/"+resource+"/") && !slices.Contains(out, resource) {
				out = append(out, resource)
			}
		}
	}
	return out
}
