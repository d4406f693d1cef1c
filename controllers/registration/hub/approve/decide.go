// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// maxVerdicts is how many requests one pass answers.
	maxVerdicts = 32
	// soon is when a pass that could not do everything is repeated.
	soon = time.Second
)

// State is everything that a decision needs.
type State struct {
	// Cluster is nil when there is no ManagedCluster of the name.
	Cluster *clusterv1.ManagedCluster
	// Requests are those with the label of the cluster, oldest first.
	Requests []Request
	// Alive is true when the cluster's lease is fresh and its agent has joined:
	// the lease that the hub makes says nothing of an agent.
	Alive bool
	// Heard is when the lease was renewed last, as far as this process saw it; zero
	// when it saw no renewal. Period is how often it should be.
	Heard  time.Time
	Period time.Duration
	// AutoApprove lists the users whose first requests need no person.
	AutoApprove []string
	// Now is the time of the decision.
	Now time.Time
}

// Verdict is an answer to one request.
type Verdict struct {
	// CSR is the request with the answer in its conditions.
	CSR *certificatesv1.CertificateSigningRequest
	// Event tells of the answer on the ManagedCluster.
	Event reconcile.Event
	// Spends are the tokens of which an approval takes a use.
	Spends []Token
}

// Decision is a plan for the ManagedCluster and what becomes of its requests.
type Decision struct {
	reconcile.Plan
	// Verdicts are given before the plan is carried out.
	Verdicts []Verdict
	// Leftovers are requests to delete as they are, after the plan.
	Leftovers []*certificatesv1.CertificateSigningRequest
}

// Decide is pure. A request that somebody answered is never answered again: the
// word of a person who was first stands.
func Decide(s State) Decision {
	d := Decision{}
	var next time.Duration
	d.Leftovers, next = leftovers(s)
	if s.Cluster != nil && s.Cluster.DeletionTimestamp == nil {
		mc := s.Cluster.DeepCopy()
		d.Object = mc
		note(s, mc)
		approvals, waits := verdicts(s, mc)
		// A flood of what is refused holds up no approval.
		d.Verdicts = approvals
		d.Events = strangers(d.Leftovers)
		events, look := judgeName(s, mc)
		d.Events = append(d.Events, events...)
		next = sooner(sooner(sooner(next, judgeRequests(s, mc)), released(s, mc)), look)
		if waits && len(d.Verdicts) > 0 {
			next = soon
		}
	}
	d.Verdicts = append(d.Verdicts, refusals(s)...)
	if len(d.Verdicts) > maxVerdicts {
		d.Verdicts, next = d.Verdicts[:maxVerdicts], soon
	}
	if d.Object != nil {
		for _, v := range d.Verdicts {
			d.Events = append(d.Events, v.Event)
		}
	}
	d.RequeueAfter = next
	return d
}

// sooner returns the shorter of two times; zero is never.
func sooner(a, b time.Duration) time.Duration {
	return reconcile.Result{RequeueAfter: a}.Sooner(reconcile.Result{RequeueAfter: b}).RequeueAfter
}

// strangers are Events that tell, once each, which agents of other clusters sent
// what is cleared away.
func strangers(gone []*certificatesv1.CertificateSigningRequest) []reconcile.Event {
	told := map[string]bool{}
	var out []reconcile.Event
	for _, csr := range gone {
		user := csr.Spec.Username
		if originOf(Request{CSR: csr}) != stranger || told[user] {
			continue
		}
		told[user] = true
		cluster := csr.Labels[clusterv1.LabelClusterName]
		out = append(out, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: "ForeignCertificateRequest", Namespace: cluster, Once: true, Of: user,
			Message: fmt.Sprintf("%s, the agent of another cluster, sends certificate requests in the name of cluster %s; they are cleared away. "+
				"If that goes on, deny the cluster of that agent", quote(user), cluster),
		})
	}
	return out
}

// verdicts answers the open requests of a cluster whose tokens are good. waits
// tells that some were not looked at yet. The request of another agent than the
// one whose cluster reports stays open: an agent that changed its namespace or its
// mode has another name, and a denied agent of OCM waits for ever.
func verdicts(s State, mc *clusterv1.ManagedCluster) (out []Verdict, waits bool) {
	for _, r := range s.Requests {
		switch {
		case r.Fault != nil || r.Refusal.Reason != "" || answered(r.CSR) || contests(s, mc, r):
		case r.Waits:
			waits = true
		case r.MayRenew:
			out = append(out, approval(s, r, "The agent renews its own certificate"))
		case slices.Contains(s.AutoApprove, r.CSR.Spec.Username) && !held(s, mc, r):
			out = append(out, approval(s, r, fmt.Sprintf("%s may register clusters without a person", r.CSR.Spec.Username)))
		}
	}
	return out, waits
}

func approval(s State, r Request, why string) Verdict {
	v := answer(s, r, certificatesv1.CertificateApproved, Refusal{clusterv1.ReasonAutoApproved, why})
	v.Spends = r.Limited
	return v
}

// refusals denies the open requests whose token is not good for them.
func refusals(s State) []Verdict {
	var out []Verdict
	for _, r := range s.Requests {
		if r.Fault == nil && r.Refusal.Reason != "" && !answered(r.CSR) {
			out = append(out, answer(s, r, certificatesv1.CertificateDenied, r.Refusal))
		}
	}
	return out
}

// held tells whether a cluster has joined under the name, so that a request of
// somebody who may register clusters is no longer enough: it could take over the
// identity of a cluster that is only away. The agent that held the name last gets
// a new certificate once the old one has ended; all else waits for a person.
func held(s State, mc *clusterv1.ManagedCluster, r Request) bool {
	if s.Alive {
		return true
	}
	if apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionJoined) == nil {
		return false
	}
	end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
	return mc.Annotations[clusterv1.AnnotationAgentName] != r.Agent.Name || err != nil || s.Now.Before(end)
}

// released is when the last certificate of a cluster ends whose holder asks for a
// new one: until then the request is held.
func released(s State, mc *clusterv1.ManagedCluster) time.Duration {
	end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
	if err != nil || !end.After(s.Now) || !slices.ContainsFunc(s.Requests, func(r Request) bool {
		return r.Fault == nil && r.Refusal.Reason == "" && !answered(r.CSR) && slices.Contains(s.AutoApprove, r.CSR.Spec.Username) &&
			mc.Annotations[clusterv1.AnnotationAgentName] == r.Agent.Name
	}) {
		return 0
	}
	return end.Sub(s.Now)
}

// note keeps in annotations who got the last certificate, by which join token, and
// until when it lives. The last that was approved counts, not the last that was sent:
// a person may have let another agent in since the holder asked.
func note(s State, mc *clusterv1.ManagedCluster) {
	issued := slices.DeleteFunc(slices.Clone(s.Requests), func(r Request) bool { return r.Certificate == nil })
	slices.SortStableFunc(issued, func(a, b Request) int {
		return cmp.Or(answeredAt(a.CSR).Compare(answeredAt(b.CSR)), byPerson(a.CSR)-byPerson(b.CSR), writtenLater(a.CSR, b.CSR))
	})
	for _, r := range issued {
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationAgentName, r.Agent.Name)
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationCertificateExpires, r.Certificate.End.UTC().Format(time.RFC3339))
		if r.Token != "" {
			metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationJoinedBy, r.Token)
		}
	}
}

// byPerson is 1 for a request that this loop did not approve. It has the last word among
// those of one second, which is as precise as times of approval are.
func byPerson(csr *certificatesv1.CertificateSigningRequest) int {
	if c := find(csr, certificatesv1.CertificateApproved); c != nil && c.Reason == clusterv1.ReasonAutoApproved {
		return 0
	}
	return 1
}

// writtenLater orders two requests by their last writes, which are those of their
// certificates, where times are equal. It is 0 where the versions cannot be compared.
func writtenLater(a, b *certificatesv1.CertificateSigningRequest) int {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	if err != nil {
		return 0
	}
	return order
}

// answer is the request with an approval or a denial added.
func answer(s State, r Request, kind certificatesv1.RequestConditionType, why Refusal) Verdict {
	csr := r.CSR.DeepCopy()
	csr.SetGroupVersionKind(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"))
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: why.Reason, Message: why.Message, LastUpdateTime: metav1.NewTime(s.Now),
	})
	event := reconcile.Event{Type: corev1.EventTypeNormal, Reason: "ManagedClusterCSRAutoApproved", Namespace: r.Agent.Cluster, Message: why.Message}
	if kind == certificatesv1.CertificateDenied {
		event.Type, event.Reason = corev1.EventTypeWarning, why.Reason
		event.Message = fmt.Sprintf("Certificate request %s of agent %s was denied: %s", csr.Name, r.Agent.Name, why.Message)
	}
	return Verdict{CSR: csr, Event: event}
}

// set writes a condition unless it says so already.
func set(mc *clusterv1.ManagedCluster, c metav1.Condition, now time.Time) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return
	}
	reconcile.SetCondition(&mc.Status.Conditions, c, now)
}
