// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// audited is a request as the API server's audit log tells it.
type audited struct {
	Verb, Stage, RequestURI, UserAgent string
	ObjectRef                          struct{ Resource, Namespace string }
}

// auditedHub is a hub of this test alone, and what agents have asked of it.
func auditedHub(t *testing.T) (*hub, func() []audited) {
	t.Helper()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.json"), filepath.Join(dir, "audit.log")
	require.NoError(t, os.WriteFile(policy, []byte(`{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],
		"rules":[{"level":"None","nonResourceURLs":["*"]},{"level":"Metadata"}]}`), 0o600))
	h := prepareHub(t, harness.ControlPlane(t, "hub", harness.APIServer("--audit-policy-file="+policy, "--audit-log-path="+log)))
	return h, func() []audited {
		raw, err := os.ReadFile(log)
		require.NoError(t, err)
		var out []audited
		for line := range strings.Lines(string(raw)) {
			var r audited
			if json.Unmarshal([]byte(line), &r) == nil && strings.HasPrefix(r.UserAgent, "ocm-agent/") {
				out = append(out, r)
			}
		}
		return out
	}
}

func TestAnAgentWatchesItsOneRequestAndNoneAfterwards(t *testing.T) {
	h, agentAsked := auditedHub(t)
	h.learnAddons(t)
	s := newSpoke(t)
	s.install(t, config.Options{ClusterName: "audited", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	request := h.awaitRequest(t, "audited")
	h.accept(t, "audited")
	h.approve(t, request.GetName())
	h.change(t, "audited", func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 1 })

	open, renewals := 0, 0
	count := func() {
		open, renewals = 0, 0
		for _, r := range agentAsked() {
			switch {
			case r.ObjectRef.Resource == "leases" && r.Verb == "update" && r.Stage == "ResponseComplete":
				renewals++
			case r.ObjectRef.Resource == "certificatesigningrequests" && r.Verb == "watch":
				require.Contains(t, r.RequestURI, "fieldSelector=metadata.name%3D"+request.GetName())
				if r.Stage == "ResponseStarted" {
					open++
				} else if r.Stage == "ResponseComplete" {
					open--
				}
			}
		}
	}
	await(t, func() bool { count(); return renewals > 2 })
	await(t, func() bool { count(); return open == 0 }, "a watch of certificate requests goes on")

	// At rest nothing is asked but one PUT for a renewal: the last requests are ten
	// renewals in a row.
	var last []string
	await(t, func() bool {
		last = nil
		for _, r := range agentAsked() {
			last = append(last, r.Verb+" "+r.ObjectRef.Resource)
		}
		if last = last[max(0, len(last)-10):]; len(last) < 10 {
			return false
		}
		return !slices.ContainsFunc(last, func(r string) bool { return r != "update leases" })
	}, "the agent does not come to rest: %v", func() any { return last })
}
