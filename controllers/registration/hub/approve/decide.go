// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	d := Decision{Verdicts: refusals(s)}
	var next time.Duration
	d.Leftovers, next = leftovers(s)
	if s.Cluster != nil && s.Cluster.DeletionTimestamp == nil {
		mc := s.Cluster.DeepCopy()
		d.Object = mc
		note(s, mc)
		verdicts, waits := verdicts(s, mc)
		d.Verdicts = append(d.Verdicts, verdicts...)
		next = sooner(sooner(next, judgeRequests(s, mc)), released(s, mc))
		if waits && len(d.Verdicts) > 0 {
			next = soon
		}
	}
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

// verdicts answers the open requests of a cluster whose tokens are good, and
// keeps the condition DuplicateClusterName. waits tells that some were not
// looked at yet.
func verdicts(s State, mc *clusterv1.ManagedCluster) (out []Verdict, waits bool) {
	holder := mc.Annotations[clusterv1.AnnotationAgentName]
	duplicate := ""
	for _, r := range s.Requests {
		switch {
		case r.Fault != nil || r.Refusal.Reason != "":
		case answered(r.CSR):
			if c := find(r.CSR, certificatesv1.CertificateDenied); c != nil && c.Reason == clusterv1.ReasonDuplicateClusterName {
				duplicate = duplicateMessage(r, holder)
			}
		case holder != "" && holder != r.Agent.Name && s.Alive:
			duplicate = duplicateMessage(r, holder)
			out = append(out, answer(s, r, certificatesv1.CertificateDenied, Refusal{clusterv1.ReasonDuplicateClusterName, duplicate}))
		case r.Waits:
			waits = true
		case r.MayRenew:
			out = append(out, approval(s, r, "The agent renews its own certificate"))
		case slices.Contains(s.AutoApprove, r.CSR.Spec.Username) && !held(s, mc, r):
			out = append(out, approval(s, r, fmt.Sprintf("%s may register clusters without a person", r.CSR.Spec.Username)))
		}
	}
	judgeName(s, mc, duplicate)
	return out, waits
}

func approval(s State, r Request, why string) Verdict {
	return answer(s, r, certificatesv1.CertificateApproved, Refusal{clusterv1.ReasonAutoApproved, why})
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

// note keeps in annotations who got the last certificate, and until when it
// lives; requests come oldest first, so the newest has the last word.
func note(s State, mc *clusterv1.ManagedCluster) {
	for _, r := range s.Requests {
		if r.Certificate == nil {
			continue
		}
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationAgentName, r.Agent.Name)
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationCertificateExpires, r.Certificate.End.UTC().Format(time.RFC3339))
	}
}

func duplicateMessage(r Request, holder string) string {
	return fmt.Sprintf("Cluster name %s is held by agent %s, which is alive; agent %s must join under another name, or agent %s must be removed first",
		r.Agent.Cluster, holder, r.Agent.Name, holder)
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

// judgeName keeps the condition DuplicateClusterName: it stands while a request
// that was denied for it is there.
func judgeName(s State, mc *clusterv1.ManagedCluster, duplicate string) {
	c := metav1.Condition{
		Type: clusterv1.ConditionDuplicateClusterName, Status: metav1.ConditionTrue,
		Reason: clusterv1.ReasonDuplicateClusterName, Message: duplicate, ObservedGeneration: mc.Generation,
	}
	if duplicate == "" {
		if apimeta.FindStatusCondition(mc.Status.Conditions, c.Type) == nil {
			return
		}
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, clusterv1.ReasonNoDuplicate, "One agent holds the name"
	}
	set(mc, c, s.Now)
}

// set writes a condition unless it says so already.
func set(mc *clusterv1.ManagedCluster, c metav1.Condition, now time.Time) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return
	}
	reconcile.SetCondition(&mc.Status.Conditions, c, now)
}
