// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// at gives a request a name, and the times of its creation and its answer, in minutes.
func at(r Request, name string, created, answered int) Request {
	r.CSR.Name, r.CSR.UID = name, ""
	r.CSR.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(created) * time.Minute))
	for i := range r.CSR.Status.Conditions {
		r.CSR.Status.Conditions[i].LastUpdateTime = metav1.NewTime(now.Add(time.Duration(answered) * time.Minute))
	}
	return r
}

func got(r Request) Request {
	r.Expires = new(now.Add(time.Hour))
	return r
}

func TestTheConditionTellsOfTheLastRequest(t *testing.T) {
	approved := func(name string, created, answered int) Request {
		return at(answeredWith("a", certificatesv1.CertificateApproved, "x"), name, created, answered)
	}
	denied := func(name string, created, answered int) Request {
		r := at(answeredWith("a", certificatesv1.CertificateDenied, "KubectlDeny"), name, created, answered)
		r.CSR.Status.Conditions[0].Message = "not you"
		return r
	}
	bare := denied("r1", -5, -4)
	bare.CSR.Status.Conditions[0].Reason, bare.CSR.Status.Conditions[0].Message = "", ""
	token := denied("r1", -5, -4)
	token.CSR.Status.Conditions[0].Reason, token.CSR.Status.Conditions[0].Message = clusterv1.ReasonTokenRevoked, "it was revoked"
	failed := approved("r1", -5, -4)
	failed.CSR.Status.Conditions = append(failed.CSR.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type:    certificatesv1.CertificateFailed,
		Reason:  "SignerValidationFailure",
		Message: "wrong",
	})
	hostile := denied("r1", -5, -4)
	hostile.CSR.Status.Conditions[0].Message = "\x1b[2J" + strings.Repeat("x", 10_000)
	thief := denied("r1", -5, -4)
	thief.CSR.Status.Conditions[0].Reason = clusterv1.ReasonTokenForAnotherCluster
	other := denied("r1", -5, -4)
	other.Agent.Name = "b"
	had := func(message string) []metav1.Condition {
		return []metav1.Condition{
			{
				Type:               clusterv1.ConditionCertificateRequestDenied,
				Status:             "True",
				Reason:             "RequestDenied",
				Message:            message,
				LastTransitionTime: metav1.NewTime(now.Add(-3 * time.Minute)),
			},
		}
	}
	for name, tc := range map[string]struct {
		requests []Request
		have     []metav1.Condition
		alive    bool
		status   metav1.ConditionStatus
		reason   string
		says     []string
	}{
		"nothing was asked": {},
		"an open request":   {requests: []Request{open("a", false)}},
		"a certificate":     {requests: []Request{got(approved("r1", -5, -4))}},
		"an approval":       {requests: []Request{approved("r1", -1, -1)}},
		"denied by a user": {
			requests: []Request{denied("r1", -5, -4)},
			status:   "True",
			reason:   "RequestDenied",
			says:     []string{"r1", "agent a", "sent by bootstrap", "KubectlDeny: not you", "kubectl ocm accept c1"},
		},
		"denied without a reason": {
			requests: []Request{bare},
			status:   "True",
			reason:   "RequestDenied",
			says:     []string{"no reason was given"},
		},
		"denied for its token": {
			requests: []Request{token},
			status:   "True",
			reason:   "RequestDenied",
			says:     []string{"TokenRevoked: it was revoked"},
		},
		"the signer failed": {
			requests: []Request{failed},
			status:   "True",
			reason:   "SigningFailed",
			says:     []string{"SignerValidationFailure: wrong"},
		},
		"no signer answers": {
			requests: []Request{approved("r1", -5, -4)},
			status:   "True",
			reason:   "NotSigned",
			says:     []string{"kube-controller-manager"},
		},
		"quoted text is bounded": {
			requests: []Request{hostile},
			status:   "True",
			reason:   "RequestDenied",
			says:     []string{" [2Jxxx"},
		},
		"denied again after a certificate": {
			requests: []Request{got(approved("r1", -9, -8)), denied("r2", -5, -4)},
			status:   "True",
			reason:   "RequestDenied",
			says:     []string{"r2"},
		},
		"an older one is denied after a certificate": {
			requests: []Request{denied("r1", -9, -1), got(approved("r2", -5, -4))},
		},
		"a later one got its certificate": {
			requests: []Request{denied("r1", -5, -4), got(approved("r2", -2, -1))},
			have:     had("Certificate request r1 of agent a, sent by x"),
			status:   "False",
			reason:   "CertificateIssued",
			says:     []string{"r2"}},
		"and the denied one is gone": {
			requests: []Request{got(approved("r2", -2, -1))},
			have:     had("Certificate request r1 of agent a, sent by x"),
			status:   "False",
			reason:   "CertificateIssued",
			says:     []string{"r2"}},
		"by a clock that is behind": {
			requests: []Request{denied("r1", -5, -4), got(approved("r2", -4, -90))},
			have:     had("Certificate request r1 of agent a, sent by x"),
			status:   "False",
			reason:   "CertificateIssued"},
		"the denied one is gone, and only an older certificate is there": {
			requests: []Request{got(approved("r0", -9, -8))},
			have:     had("Certificate request r1 of agent a, sent by x"),
			status:   "True",
			reason:   "RequestDenied",
			says:     []string{"r1"}},
		"all are gone": {
			have:   had("Certificate request r1 of agent a, sent by x"),
			status: "True",
			reason: "RequestDenied",
		},
		"a stranger, while the agent is well": {requests: []Request{other}, alive: true},
		"the token of another cluster, while the agent is well": {
			requests: []Request{got(approved("r0", -9, -8)), thief},
			alive:    true,
		},
		"the token of another cluster": {
			requests: []Request{thief},
			status:   "True",
			reason:   "RequestDenied",
			says:     []string{"TokenForAnotherCluster"},
		},
		"a stranger, while the agent is away": {requests: []Request{other}, status: "True", reason: "RequestDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{
					Name:        "c1",
					Annotations: map[string]string{clusterv1.AnnotationAgentName: "a"},
				},
			}
			mc.Status.Conditions = tc.have
			s := State{Cluster: mc, Requests: tc.requests, Alive: tc.alive, Now: now}
			after := Decide(s).Object.(*clusterv1.ManagedCluster)
			c := apimeta.FindStatusCondition(after.Status.Conditions, clusterv1.ConditionCertificateRequestDenied)
			if tc.status == "" {
				require.Nil(t, c)
				return
			}
			require.NotNil(t, c)
			require.Equal(t, tc.status, c.Status, c.Message)
			require.Equal(t, tc.reason, c.Reason)
			for _, text := range tc.says {
				require.Contains(t, c.Message, text)
			}
			require.Less(t, len(c.Message), 2<<10)
			require.NotContains(t, c.Message, "\x1b")
			s.Cluster, s.Now = after, now.Add(time.Second)
			require.Equal(
				t, after.Status, Decide(s).Object.(*clusterv1.ManagedCluster).Status, "a second pass changes nothing",
			)
		})
	}
}

func TestAnApprovedRequestIsLookedAtAgain(t *testing.T) {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	r := at(answeredWith("a", certificatesv1.CertificateApproved, "x"), "r1", -1, -1)
	require.Equal(t, time.Minute, Decide(State{Cluster: mc, Requests: []Request{r}, Now: now}).RequeueAfter)
}
