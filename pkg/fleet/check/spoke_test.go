// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// TestNothingIsWellThatIsDown: what an agent said before it stopped is no finding, what is wrong stays.
func TestNothingIsWellThatIsDown(t *testing.T) {
	well := Finding{Code: CodeSpokeKlusterlet, Severity: SeverityOK, Title: "klusterlet/klusterlet of cluster one is well"}
	sick := failure(CodeSpokeKlusterlet, "the agent is unhealthy", "", nil)
	runs := Finding{Code: CodeSpokeAgent, Severity: SeverityOK, Title: "klusterlet-agent 1/1 ready"}
	down := failure(CodeSpokeAgent, "klusterlet-agent 0/1 ready", "", nil)
	other := Finding{Code: CodeSpokeHub, Severity: SeverityOK}
	for name, tc := range map[string]struct{ found, want []Finding }{
		"it runs":                  {[]Finding{runs, well, other}, []Finding{runs, well, other}},
		"it is down":               {[]Finding{down, well, other}, []Finding{down, other}},
		"one of its parts is down": {[]Finding{runs, down, well}, []Finding{runs, down}},
		"it was sick, and is down": {[]Finding{down, sick}, []Finding{down, sick}},
	} {
		if diff := cmp.Diff(tc.want, withoutEchoes(tc.found, CodeSpokeKlusterlet, CodeSpokeAgent)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestAnAgentBetweenLayoutsIsToldFromOneThatIsScaledDown: to scale up the former would start a second agent.
func TestAnAgentBetweenLayoutsIsToldFromOneThatIsScaledDown(t *testing.T) {
	deployment := func(name, runs string, replicas int32) appsv1.Deployment {
		d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{runs}}}
		return d
	}
	claimed, registration := deployment("klusterlet-agent", "run", 0), deployment("klusterlet-registration-agent", "registration", 1)
	for name, tc := range map[string]struct {
		all  []appsv1.Deployment
		want bool
	}{
		"between layouts":           {[]appsv1.Deployment{claimed, registration}, true},
		"scaled down":               {[]appsv1.Deployment{claimed}, false},
		"split":                     {[]appsv1.Deployment{registration}, false},
		"another one's":             {[]appsv1.Deployment{claimed, deployment("other-registration-agent", "registration", 1)}, false},
		"it runs already":           {[]appsv1.Deployment{deployment("klusterlet-agent", "run", 1), registration}, false},
		"Singleton, by an operator": {[]appsv1.Deployment{deployment("klusterlet-agent", "agent", 0), registration}, false},
	} {
		if got := betweenLayouts(tc.all, "klusterlet"); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTheLifeOfACertificateIsJudged(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		// age is how long ago the certificate was issued, left how long it remains valid.
		age, left time.Duration
		want      Finding
	}{
		"just issued": {0, 100 * day, Finding{Severity: SeverityOK, Title: "certificate of agent, good for 100d"}},
		// It is renewed when a quarter is left, and late when less than a fifth is left.
		"due for renewal": {
			76 * day,
			24 * day,
			Finding{Severity: SeverityOK, Title: "certificate of agent, good for 24d"},
		},
		"a fifth of its life left": {
			80 * day,
			20 * day,
			Finding{Severity: SeverityOK, Title: "certificate of agent, good for 20d"},
		},
		"late": {81 * day, 19 * day, Finding{Severity: SeverityWarning, Title: "certificate of agent, good for 19d",
			Fix:   fleet.ShowLogs.With("namespace", "open-cluster-management-agent", "name", "klusterlet-agent"),
			Cause: "it should have been renewed when a quarter of its life was left, at 2026-11-15T12:00:00Z"}},
		"it runs out now": {100 * day, 0, Finding{Severity: SeverityError, Title: "the agent's certificate expired 0s ago",
			Cause: "it asks for another, which has to be accepted", Fix: AcceptOnHub.With("cluster", "c1", "hub", "")}},
		"over": {103 * day, -3 * day, Finding{Severity: SeverityError, Title: "the agent's certificate expired 3d ago",
			Cause: "it asks for another, which has to be accepted", Fix: AcceptOnHub.With("cluster", "c1", "hub", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &agentCheck{checking: onSpoke(), k: &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: "klusterlet"},
				Spec: operatorv1.KlusterletSpec{ClusterName: "c1"}}}
			got := a.checkLifetime(&x509.Certificate{Subject: pkix.Name{CommonName: "agent"}, NotBefore: checkedAt.Add(-tc.age),
				NotAfter: checkedAt.Add(tc.left)})
			tc.want.Code = CodeSpokeCertificate
			if diff := cmp.Diff([]Finding{tc.want}, got, byContext); diff != "" {
				t.Error(diff)
			}
		})
	}
}
