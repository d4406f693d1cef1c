// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
)

// auditedHub returns a hub for this test alone, and a function that returns the agents'
// requests to it.
func auditedHub(t *testing.T) (*hub, func() []audit.Request) {
	t.Helper()
	log := audit.New(t, audit.OnlyResources)
	h := prepareHub(t, harness.ControlPlane(t, "hub", harness.APIServer(log.Flags()...)))
	return h, func() []audit.Request {
		return slices.DeleteFunc(log.Since(0), func(r audit.Request) bool { return !strings.HasPrefix(r.UserAgent, "ocm-agent/") })
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
			case r.Object.Resource == "leases" && r.Verb == "update" && r.Stage == "ResponseComplete":
				renewals++
			case r.Object.Resource == "certificatesigningrequests" && r.Verb == "watch":
				require.Contains(t, r.URI, "fieldSelector=metadata.name%3D"+request.GetName())
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

	// At rest, the only requests are one PUT for each renewal: the last requests are ten
	// renewals in a row.
	var last []string
	await(t, func() bool {
		last = nil
		for _, r := range agentAsked() {
			last = append(last, r.Verb+" "+r.Object.Resource)
		}
		if last = last[max(0, len(last)-10):]; len(last) < 10 {
			return false
		}
		return !slices.ContainsFunc(last, func(r string) bool { return r != "update leases" })
	}, "the agent does not come to rest: %v", func() any { return last })
}
