// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const (
	// signingTime is how long an approved request may wait for the signer before this is
	// reported; kube-controller-manager needs less than a second.
	signingTime = 2 * time.Minute
	// maxQuoted bounds each quoted text of others, in bytes.
	maxQuoted = 400
)

// outcome is the result of a cluster's last requests; each is nil where there is none.
type outcome struct {
	// failed got no certificate; good has one or is about to; issued has one.
	failed, good, issued *Request
	// next is the delay until a request has waited too long for its signer; zero means never.
	next time.Duration
}

// outcomeOf checks the requests that concern the cluster's agent.
func outcomeOf(s State, holder string) outcome {
	var o outcome
	for i := range s.Requests {
		r := &s.Requests[i]
		// Requests of strangers are not the agent's problem while it is well.
		if r.Fault != nil || (s.Alive && holder != "" && r.Agent.Name != holder) {
			continue
		}
		refusal, waited := refused(r.CSR), s.Now.Sub(answeredAt(r.CSR))
		switch {
		case refusal != nil:
			// A request with another cluster's token is a stranger's, whatever agent it
			// names.
			stranger := s.Alive && refusal.Reason == clusterv1.ReasonTokenForAnotherCluster
			if !stranger && refusal.Reason != clusterv1.ReasonDuplicateClusterName {
				o.failed = r
			}
		case r.Expires != nil:
			o.good, o.issued = r, r
		case !isAnswered(r.CSR):
		case waited >= signingTime:
			o.failed = r
		default:
			o.good, o.next = r, signingTime-waited
		}
	}
	return o
}

// evaluateRequests maintains the condition CertificateRequestDenied. It returns when to check it
// again; zero means never.
func evaluateRequests(s State, mc *clusterv1.ManagedCluster) time.Duration {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionCertificateRequestDenied)
	told := have != nil && have.Status == metav1.ConditionTrue
	o := outcomeOf(s, mc.Annotations[clusterv1.AnnotationAgentName])
	over := false
	if o.failed != nil && o.good != nil && !o.failed.CSR.CreationTimestamp.After(o.good.CSR.CreationTimestamp.Time) {
		over = told && strings.HasPrefix(have.Message, messagePrefix(*o.failed))
		o.failed = nil
	}
	c := metav1.Condition{Type: clusterv1.ConditionCertificateRequestDenied}
	switch {
	case o.failed != nil:
		c.Status = metav1.ConditionTrue
		c.Reason, c.Message = explain(*o.failed)
	case told && o.issued != nil && (over || isSentOrAnsweredSince(o.issued.CSR, have.LastTransitionTime.Time)):
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1.ReasonRequestIssued
		c.Message = fmt.Sprintf("Certificate request %s of agent %s was issued its certificate", o.issued.CSR.Name, o.issued.Agent.Name)
	default:
		return o.next
	}
	hub.SetCondition(mc, s.Now, c)
	return o.next
}

// isSentOrAnsweredSince reports whether a request was sent or answered at a time or later. A request that
// failed before may be gone by now, and the clocks of those who answer differ.
func isSentOrAnsweredSince(csr *certificatesv1.CertificateSigningRequest, at time.Time) bool {
	return !answeredAt(csr).Before(at) || !csr.CreationTimestamp.Time.Before(at)
}

// messagePrefix is the start of the message about a request.
func messagePrefix(r Request) string {
	return fmt.Sprintf("Certificate request %s of agent %s, ", r.CSR.Name, r.Agent.Name)
}

// explain returns why a request has no certificate and what to do about it.
func explain(r Request) (reason, message string) {
	what := messagePrefix(r) + "sent by " + quote(r.CSR.Spec.Username) + ","
	refusal := refused(r.CSR)
	switch {
	case refusal == nil:
		return clusterv1.ReasonRequestNotSigned, what + " is approved, but no signer has answered it for " + signingTime.String() +
			"; check that the hub's kube-controller-manager runs with a signing certificate: some managed services sign no client certificates"
	case refusal.Type == certificatesv1.CertificateFailed:
		return clusterv1.ReasonRequestFailed, what + " could not be signed" + quoteAnswer(*refusal) +
			"; the agent asks again by itself once the hub's signer accepts such requests"
	}
	message = what + " was denied" + quoteAnswer(*refusal)
	switch refusal.Reason {
	case clusterv1.ReasonTokenForAnotherCluster, clusterv1.ReasonTokenRevoked, clusterv1.ReasonTokenExpired, clusterv1.ReasonTokenUsedUp:
		// These messages already say what to do.
		return clusterv1.ReasonRequestDenied, message
	}
	return clusterv1.ReasonRequestDenied, message + fmt.Sprintf("; the agent asks again by itself: accept it with kubectl ocm accept %s, "+
		"or delete managedcluster %s and revoke its token", r.Agent.Cluster, r.Agent.Cluster)
}

// quoteAnswer quotes the reason and message of an answer, where given.
func quoteAnswer(c certificatesv1.CertificateSigningRequestCondition) string {
	said := strings.Trim(quote(c.Reason)+": "+quote(c.Message), ": ")
	if said == "" {
		said = "no reason was given"
	}
	return " (" + said + ")"
}

// quote makes text from others safe for a message: one line, bounded, and without control
// characters a terminal would obey.
func quote(text string) string {
	return excerpt.Of(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text), maxQuoted)
}
