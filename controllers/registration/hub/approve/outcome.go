// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const (
	// signingTime is how long an approved request may wait for the signer before
	// that is told; kube-controller-manager needs less than a second.
	signingTime = 2 * time.Minute
	// maxQuoted bounds what is quoted of the words of others, in bytes.
	maxQuoted = 400
)

// outcome is how the last requests of a cluster went; each is nil where there is
// none.
type outcome struct {
	// failed got no certificate; good got one or is about to; issued got one.
	failed, good, issued *Request
	// next is when a request has waited too long for its signer; zero is never.
	next time.Duration
}

// outcomeOf looks at the requests that are the concern of the cluster's agent.
func outcomeOf(s State, holder string) outcome {
	var o outcome
	for i := range s.Requests {
		r := &s.Requests[i]
		// What strangers ask while the agent is well is not the agent's trouble.
		if r.Fault != nil || (s.Alive && holder != "" && r.Agent.Name != holder) {
			continue
		}
		refusal, waited := refused(r.CSR), s.Now.Sub(answeredAt(r.CSR))
		switch {
		case refusal != nil:
			// The token of another cluster is a stranger's, whatever agent it names.
			stranger := s.Alive && refusal.Reason == clusterv1.ReasonTokenForAnotherCluster
			if !stranger && refusal.Reason != clusterv1.ReasonDuplicateClusterName {
				o.failed = r
			}
		case r.Certificate != nil:
			o.good, o.issued = r, r
		case !answered(r.CSR):
		case waited >= signingTime:
			o.failed = r
		default:
			o.good, o.next = r, signingTime-waited
		}
	}
	return o
}

// judgeRequests keeps the condition CertificateRequestDenied. It returns when it
// has to be looked at again; zero is never.
func judgeRequests(s State, mc *clusterv1.ManagedCluster) time.Duration {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionCertificateRequestDenied)
	told := have != nil && have.Status == metav1.ConditionTrue
	o := outcomeOf(s, mc.Annotations[clusterv1.AnnotationAgentName])
	over := false
	if o.failed != nil && o.good != nil && !o.failed.CSR.CreationTimestamp.After(o.good.CSR.CreationTimestamp.Time) {
		over = told && strings.HasPrefix(have.Message, naming(*o.failed))
		o.failed = nil
	}
	c := metav1.Condition{Type: clusterv1.ConditionCertificateRequestDenied, ObservedGeneration: mc.Generation}
	switch {
	case o.failed != nil:
		c.Status = metav1.ConditionTrue
		c.Reason, c.Message = explain(*o.failed)
	case told && o.issued != nil && (over || after(o.issued.CSR, have.LastTransitionTime.Time)):
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1.ReasonRequestIssued
		c.Message = fmt.Sprintf("Certificate request %s of agent %s got its certificate", o.issued.CSR.Name, o.issued.Agent.Name)
	default:
		return o.next
	}
	set(mc, c, s.Now)
	return o.next
}

// after tells whether a request was sent or answered after a time. What failed
// before it may be gone by now, and clocks of those who answer differ.
func after(csr *certificatesv1.CertificateSigningRequest, at time.Time) bool {
	return !answeredAt(csr).Before(at) || !csr.CreationTimestamp.Time.Before(at)
}

// naming begins the message about a request.
func naming(r Request) string {
	return fmt.Sprintf("Certificate request %s of agent %s, ", r.CSR.Name, r.Agent.Name)
}

// explain says why a request has no certificate and what to do.
func explain(r Request) (reason, message string) {
	what := naming(r) + "sent by " + quote(r.CSR.Spec.Username) + ","
	refusal := refused(r.CSR)
	switch {
	case refusal == nil:
		return clusterv1.ReasonRequestNotSigned, what + " is approved, but no signer has answered it for " + signingTime.String() +
			"; see whether the hub's kube-controller-manager runs with a signing certificate: some managed services sign no client certificates"
	case refusal.Type == certificatesv1.CertificateFailed:
		return clusterv1.ReasonRequestFailed, what + " could not be signed" + because(*refusal) +
			"; the agent asks again by itself once the signer of the hub takes such requests"
	}
	message = what + " was denied" + because(*refusal)
	switch refusal.Reason {
	case clusterv1.ReasonTokenForAnotherCluster, clusterv1.ReasonTokenRevoked, clusterv1.ReasonTokenExpired, clusterv1.ReasonTokenUsedUp:
		// These say themselves what to do.
		return clusterv1.ReasonRequestDenied, message
	}
	return clusterv1.ReasonRequestDenied, message + fmt.Sprintf("; the agent asks again by itself: let it in with kubectl ocm accept %s, "+
		"or delete managedcluster %s and revoke its token", r.Agent.Cluster, r.Agent.Cluster)
}

// because quotes who answered a request, as far as the answer tells.
func because(c certificatesv1.CertificateSigningRequestCondition) string {
	said := strings.Trim(quote(c.Reason)+": "+quote(c.Message), ": ")
	if said == "" {
		said = "no reason was given"
	}
	return " (" + said + ")"
}

// quote makes the words of others fit for a message: one line, bounded, and
// without what a terminal would obey.
func quote(text string) string {
	return excerpt.Of(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text), maxQuoted)
}
