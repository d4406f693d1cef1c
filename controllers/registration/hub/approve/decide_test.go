// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func open(agent string, mayRenew bool) Request {
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-" + agent}}
	csr.Spec.Username = "bootstrap"
	return Request{CSR: csr, Agent: identity.Agent{Cluster: "c1", Name: agent}, MayRenew: mayRenew}
}

func answeredWith(agent string, kind certificatesv1.RequestConditionType, reason string) Request {
	r := open(agent, true)
	r.CSR.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: kind, Status: corev1.ConditionTrue, Reason: reason},
	}
	return r
}

func TestDecide(t *testing.T) {
	issued := func(agent string) Request {
		r := answeredWith(agent, certificatesv1.CertificateApproved, "Test")
		r.Expires = new(now.Add(24 * time.Hour))
		return r
	}
	answered := func(r Request, reason string, after time.Duration) Request {
		r.CSR.Status.Conditions[0].Reason, r.CSR.Status.Conditions[0].LastUpdateTime = reason, metav1.NewTime(now.Add(after))
		return r
	}
	written := func(r Request, version string) Request {
		r.CSR.ResourceVersion = version
		return r
	}
	faulty := open("b", true)
	faulty.Fault = identity.ErrNoAgentRequest
	refusedFor := open("a", true)
	refusedFor.Refusal = Refusal{clusterv1.ReasonTokenForAnotherCluster, "it is for c2"}
	unseen := open("a", true)
	unseen.MayRenew, unseen.Waits = false, true
	const ended = "2026-07-31T12:00:00Z"
	for name, tc := range map[string]struct {
		holder    string
		alive     bool
		joined    bool
		expires   string
		auto      []string
		requests  []Request
		have      []metav1.Condition
		verdicts  map[string]string
		duplicate metav1.ConditionStatus
		wantAgent string
	}{
		"no request":                        {},
		"a first request is left to a user": {requests: []Request{open("a", false)}},
		"a first request of a listed user is approved": {
			auto:     []string{"bootstrap"},
			requests: []Request{open("a", false)},
			verdicts: map[string]string{"csr-a": "Approved"},
		},
		"a renewal is approved": {
			holder:    "a",
			alive:     true,
			requests:  []Request{open("a", true)},
			verdicts:  map[string]string{"csr-a": "Approved"},
			wantAgent: "a",
		},
		"an approved request is left alone": {
			requests: []Request{answeredWith("a", certificatesv1.CertificateApproved, "x")},
		},
		"a denied request is left alone": {
			requests: []Request{answeredWith("a", certificatesv1.CertificateDenied, "x")},
		},
		"who got the certificate holds the name": {requests: []Request{issued("a")}, wantAgent: "a"},
		"the newest certificate counts": {
			holder:    "a",
			requests:  []Request{issued("a"), issued("b")},
			wantAgent: "b",
		},
		"the last that was approved counts, not the last that asked": {
			holder: "a",
			requests: []Request{
				answered(issued("b"), "Test", 2*time.Second),
				answered(issued("a"), clusterv1.ReasonAutoApproved, time.Second),
			},
			wantAgent: "b"},
		"within a second a user's approval wins": {
			holder: "a",
			requests: []Request{
				answered(issued("b"), "Test", time.Second),
				answered(issued("a"), clusterv1.ReasonAutoApproved, time.Second),
			},
			wantAgent: "b"},
		"of two answers of one user within a second the later write counts": {
			holder: "a",
			requests: []Request{
				written(answered(issued("b"), "Test", time.Second), "10"),
				written(answered(issued("a"), "Test", time.Second), "9"),
			},
			wantAgent: "b"},
		"a request that does not have the form is never answered": {
			holder:    "a",
			alive:     true,
			auto:      []string{"bootstrap"},
			requests:  []Request{faulty},
			wantAgent: "a",
		},
		"a token that is not valid denies, listed or not": {
			auto:     []string{"bootstrap"},
			requests: []Request{refusedFor},
			verdicts: map[string]string{"csr-a": "Denied"},
		},
		"what was not checked waits": {auto: []string{"bootstrap"}, requests: []Request{unseen}},
		"a name that was joined is not given away by a list": {
			holder:    "a",
			joined:    true,
			auto:      []string{"bootstrap"},
			requests:  []Request{open("b", false)},
			wantAgent: "a",
		},
		"not even to the same agent while its certificate lives": {
			holder:    "a",
			joined:    true,
			expires:   "2026-08-02T12:00:00Z",
			auto:      []string{"bootstrap"},
			requests:  []Request{open("a", false)},
			wantAgent: "a",
		},
		"but to it when that has expired": {
			holder:    "a",
			joined:    true,
			expires:   ended,
			auto:      []string{"bootstrap"},
			requests:  []Request{open("a", false)},
			verdicts:  map[string]string{"csr-a": "Approved"},
			wantAgent: "a"},
		"and not to another one then": {
			holder:    "a",
			joined:    true,
			expires:   ended,
			auto:      []string{"bootstrap"},
			requests:  []Request{open("b", false)},
			wantAgent: "a",
		},
		"a holder that never joined does not hold the name": {
			holder:    "a",
			expires:   ended,
			auto:      []string{"bootstrap"},
			requests:  []Request{open("b", false)},
			verdicts:  map[string]string{"csr-b": "Approved"},
			wantAgent: "a"},
		"a cluster of another hub that is alive is held by its agent": {
			alive:    true,
			auto:     []string{"bootstrap"},
			requests: []Request{open("a", false)},
		},
		"another agent waits for a user while the holder is alive": {
			holder:    "a",
			alive:     true,
			requests:  []Request{open("b", true)},
			duplicate: "True",
			wantAgent: "a",
		},
		"and is not approved by a list": {
			holder:    "a",
			alive:     true,
			auto:      []string{"bootstrap"},
			requests:  []Request{open("b", false)},
			duplicate: "True",
			wantAgent: "a",
		},
		"its own renewal goes on meanwhile": {
			holder:    "a",
			alive:     true,
			requests:  []Request{open("a", true), open("b", false)},
			verdicts:  map[string]string{"csr-a": "Approved"},
			duplicate: "True",
			wantAgent: "a",
		},
		"the holder is no rival of itself": {
			holder:    "a",
			alive:     true,
			requests:  []Request{open("a", false)},
			wantAgent: "a",
		},
		"another agent is left to a user when the holder is away": {
			holder:    "a",
			requests:  []Request{open("b", false)},
			wantAgent: "a",
		},
		"one that a user answered is no rival": {
			holder:    "a",
			alive:     true,
			requests:  []Request{answeredWith("b", certificatesv1.CertificateDenied, "x")},
			wantAgent: "a",
		},
		"and ends with its request": {
			holder:    "a",
			have:      []metav1.Condition{{Type: clusterv1.ConditionDuplicateClusterName, Status: "True"}},
			duplicate: "False",
			wantAgent: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			if tc.holder != "" {
				mc.Annotations = map[string]string{clusterv1.AnnotationAgentName: tc.holder}
			}
			if tc.expires != "" {
				mc.Annotations[clusterv1.AnnotationCertificateExpires] = tc.expires
			}
			mc.Status.Conditions = tc.have
			if tc.joined {
				mc.Status.Conditions = append(mc.Status.Conditions, metav1.Condition{
					Type:   clusterv1.ConditionJoined,
					Status: "False",
				})
			}
			d := Decide(State{Cluster: mc, Requests: tc.requests, Alive: tc.alive, AutoApprove: tc.auto, Now: now})
			got := map[string]string{}
			for _, v := range d.Verdicts {
				last := v.CSR.Status.Conditions[len(v.CSR.Status.Conditions)-1]
				got[v.CSR.Name] = string(last.Type)
				require.Equal(t, corev1.ConditionTrue, last.Status)
				if last.Type == certificatesv1.CertificateApproved {
					require.Equal(t, clusterv1.ReasonAutoApproved, last.Reason)
				}
			}
			if tc.verdicts == nil {
				tc.verdicts = map[string]string{}
			}
			require.Equal(t, tc.verdicts, got)
			told := len(got)
			if tc.duplicate == metav1.ConditionTrue {
				told++
			}
			require.Len(t, d.Events, told)
			after := d.Object.(*clusterv1.ManagedCluster)
			require.Equal(t, tc.wantAgent, after.Annotations[clusterv1.AnnotationAgentName])
			c := apimeta.FindStatusCondition(after.Status.Conditions, clusterv1.ConditionDuplicateClusterName)
			if tc.duplicate == "" {
				require.Nil(t, c)
			} else {
				require.Equal(t, tc.duplicate, c.Status)
				again := Decide(State{Cluster: after, Requests: tc.requests, Alive: tc.alive, Now: now.Add(time.Hour)})
				require.Equal(t, after.Status, again.Object.(*clusterv1.ManagedCluster).Status)
			}
		})
	}
}

// The lease of an agent that is gone stays fresh for a while, so the condition is evaluated
// again.
func TestAHolderIsOnlyCalledAliveAfterASecondLook(t *testing.T) {
	mc := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Annotations: map[string]string{clusterv1.AnnotationAgentName: "a"}},
	}
	rival := at(open("b", false), "r1", -1, 0)
	s := State{
		Cluster:  mc,
		Requests: []Request{rival},
		Alive:    true,
		Period:   time.Minute,
		Now:      now,
		Heard:    now.Add(-2 * time.Minute),
	}
	look := func() (Decision, *metav1.Condition) {
		d := Decide(s)
		s.Cluster = d.Object.(*clusterv1.ManagedCluster)
		return d, apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionDuplicateClusterName)
	}
	d, c := look()
	require.Contains(t, c.Message, "may be gone")
	require.Contains(t, c.Message, "kubectl ocm accept c1 --replace")
	require.Equal(t, time.Minute, d.RequeueAfter)
	require.Len(t, d.Events, 1)
	s.Heard = now
	d, c = look()
	require.Contains(t, c.Message, "both are running")
	require.Zero(t, d.RequeueAfter)
	require.Empty(t, d.Events, "it was reported already")
	s.Alive = false
	_, c = look()
	require.Equal(t, metav1.ConditionFalse, c.Status, "a holder that is away does not contest the name")
}

func TestClustersThatGoAreLeftAlone(t *testing.T) {
	require.Nil(t, Decide(State{}).Object)
	mc := &clusterv1.ManagedCluster{}
	mc.DeletionTimestamp = &metav1.Time{Time: now}
	require.Empty(t, Decide(State{Cluster: mc, Requests: []Request{open("a", true)}}).Verdicts)
}

func TestCheckWantsAClientCertificateOfOurSigner(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{}
	csr.Spec.SignerName = "kubernetes.io/kubelet-serving"
	_, err := parseAgent(csr, "c1")
	require.ErrorIs(t, err, identity.ErrNoAgentRequest)
	csr.Spec.SignerName = clusterv1.SignerName
	csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}
	_, err = parseAgent(csr, "c1")
	require.ErrorIs(t, err, identity.ErrNoAgentRequest)
	csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
	_, err = parseAgent(csr, "c1")
	require.ErrorIs(t, err, identity.ErrNoAgentRequest, "an empty request")
}

func TestRequestsOfOneSecondHaveAnOrder(t *testing.T) {
	a, b := open("a", false), open("b", false)
	b.CSR.CreationTimestamp = metav1.NewTime(now)
	a.CSR.CreationTimestamp = b.CSR.CreationTimestamp
	for _, list := range [][]Request{{a, b}, {b, a}} {
		slices.SortFunc(list, inOrder)
		require.Equal(t, "a", list[0].Agent.Name)
	}
	a.CSR.CreationTimestamp = metav1.NewTime(now.Add(time.Second))
	require.Positive(t, inOrder(a, b), "the older comes first")
}
