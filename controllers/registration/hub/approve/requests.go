// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// maxMetadata bounds the labels and annotations of a request that is evaluated, in bytes.
const maxMetadata = 8 << 10

// TrimRequest drops from a cached CSR what no loop reads. If the CSR is too large to be an
// agent's, it also drops the request and the annotations: anyone who may create CSRs could
// fill the hub's memory with them. Such a CSR is never answered, so the trimmed copy is never
// written back.
func TrimRequest(in any) (any, error) {
	csr, ok := in.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return in, nil // a tombstone passes unchanged
	}
	size := 0
	for _, m := range []map[string]string{csr.Labels, csr.Annotations} {
		for key, value := range m {
			size += len(key) + len(value)
		}
	}
	if len(csr.Spec.Request) > identity.MaxRequest || size > maxMetadata {
		csr.Spec.Request, csr.Annotations = nil, nil
		csr.Labels = map[string]string{clusterv1.LabelClusterName: csr.Labels[clusterv1.LabelClusterName]}
	}
	return manager.Trim(csr)
}

// Request is a certificate request with the label of a cluster.
type Request struct {
	// CSR is the unmodified request; it belongs to the cache.
	CSR *certificatesv1.CertificateSigningRequest
	// Agent is the agent the certificate is for; zero when Fault is set.
	Agent identity.Agent
	// Fault is why the request does not have the form of an agent's request; such a request
	// is never answered. It may have another purpose.
	Fault error
	// Expires is when the certificate that was issued to the Agent expires; nil until then.
	Expires *time.Time
	// MayRenew is true when the requester is that same agent and the API server allows it to
	// renew this cluster's certificates.
	MayRenew bool
	// Token is the id of the join token an answered request was sent with; empty when
	// unknown.
	Token string
	// Refusal is why the token it was sent with is not valid for it.
	Refusal Refusal
	// Limited are the join tokens with a use limit that an open request was sent with.
	Limited []Token
	// Waits is true for a request that a later pass must check with the API server: one pass
	// makes a bounded number of checks.
	Waits bool
}

// Requests is an index of all certificate requests by cluster. Each is parsed once, when
// first seen: anyone who may send requests may send many. It is safe for concurrent use.
type Requests struct {
	mu       sync.RWMutex
	clusters map[string]map[types.UID]Request
	// open is how many of them are not approved.
	open int
}

// newRequests makes an empty index.
func newRequests() *Requests { return &Requests{clusters: map[string]map[types.UID]Request{}} }

// Observe records a change: old is nil for a new request, current is nil for one that is
// gone.
func (q *Requests) Observe(old, current *certificatesv1.CertificateSigningRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var known Request
	if old != nil {
		cluster := old.Labels[clusterv1.LabelClusterName]
		before, found := q.clusters[cluster][old.UID]
		if known = before; found && !wasApproved(known.CSR) {
			q.open--
		}
		delete(q.clusters[cluster], old.UID)
		if len(q.clusters[cluster]) == 0 {
			delete(q.clusters, cluster)
		}
	}
	if current == nil {
		return
	}
	cluster := current.Labels[clusterv1.LabelClusterName]
	if q.clusters[cluster] == nil {
		q.clusters[cluster] = map[types.UID]Request{}
	}
	if again, found := q.clusters[cluster][current.UID]; found && !wasApproved(again.CSR) {
		q.open--
	}
	if !wasApproved(current) {
		q.open++
	}
	q.clusters[cluster][current.UID] = updatedRequest(known, current, cluster)
}

// wasApproved reports whether a request was approved, even if it failed since.
func wasApproved(csr *certificatesv1.CertificateSigningRequest) bool {
	return findCondition(csr, certificatesv1.CertificateApproved) != nil
}

// Open is how many requests are not approved.
func (q *Requests) Open() int {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.open
}

// Clusters returns the cluster names that have requests which are not approved, unordered.
func (q *Requests) Clusters() []string {
	q.mu.RLock()
	defer q.mu.RUnlock()
	var out []string
	for cluster, all := range q.clusters {
		for _, r := range all {
			if !wasApproved(r.CSR) {
				out = append(out, cluster)
				break
			}
		}
	}
	return out
}

// updatedRequest returns the request in its current form; results parsed from an earlier form are
// kept.
func updatedRequest(known Request, csr *certificatesv1.CertificateSigningRequest, cluster string) Request {
	r := Request{CSR: csr, Agent: known.Agent, Fault: known.Fault, Expires: known.Expires}
	if known.CSR == nil || known.CSR.UID != csr.UID || known.CSR.Labels[clusterv1.LabelClusterName] != cluster {
		r.Agent, r.Fault = parseAgent(csr, cluster)
		r.Expires = nil
	}
	if r.Fault == nil && r.Expires == nil && len(csr.Status.Certificate) > 0 {
		r.Expires = expiryOf(csr.Status.Certificate, r.Agent.User())
	}
	return r
}

// Of returns the requests of a cluster, oldest first.
func (q *Requests) Of(cluster string) []Request {
	q.mu.RLock()
	out := make([]Request, 0, len(q.clusters[cluster]))
	for _, r := range q.clusters[cluster] {
		out = append(out, r)
	}
	q.mu.RUnlock()
	slices.SortFunc(out, inOrder)
	return out
}

// Count is how many requests a cluster has.
func (q *Requests) Count(cluster string) int {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return len(q.clusters[cluster])
}

// With returns the clusters with a request of a kind that was sent with a token.
func (q *Requests) With(credential string, kind func(*certificatesv1.CertificateSigningRequest) bool) []string {
	q.mu.RLock()
	defer q.mu.RUnlock()
	var out []string
	for cluster, requests := range q.clusters {
		for _, r := range requests {
			if r.Fault == nil && kind(r.CSR) && slices.Contains(r.CSR.Spec.Extra[clusterv1.ExtraCredentialID], credential) {
				out = append(out, cluster)
				break
			}
		}
	}
	return out
}

// isApproved reports whether a request has a certificate or is about to get one.
func isApproved(csr *certificatesv1.CertificateSigningRequest) bool {
	return wasApproved(csr) && refused(csr) == nil
}

// parseAgent returns the agent a CSR asks a client certificate for, or why the CSR is not a
// request of one of the cluster's agents; others are not this project's to answer.
func parseAgent(csr *certificatesv1.CertificateSigningRequest, cluster string) (identity.Agent, error) {
	if csr.Spec.SignerName != clusterv1.SignerName {
		return identity.Agent{}, fmt.Errorf("signer %s: %w", csr.Spec.SignerName, identity.ErrNoAgentRequest)
	}
	allowed := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(allowed, usage) {
			return identity.Agent{}, fmt.Errorf("usage %s: %w", usage, identity.ErrNoAgentRequest)
		}
	}
	return identity.ParseRequest(csr.Spec.Request, cluster)
}

// expiryOf returns when an issued certificate expires; nil if it is not one of that user.
func expiryOf(raw []byte, user string) *time.Time {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil
	}
	issued, err := x509.ParseCertificate(block.Bytes)
	if err != nil || issued.Subject.CommonName != user {
		return nil
	}
	return new(issued.NotAfter)
}

// findCondition returns the condition of a type, or nil.
func findCondition(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range csr.Status.Conditions {
		if csr.Status.Conditions[i].Type == kind {
			return &csr.Status.Conditions[i]
		}
	}
	return nil
}

// isOpen reports whether the request is not answered yet.
func isOpen(csr *certificatesv1.CertificateSigningRequest) bool { return !isAnswered(csr) }

// isAnswered reports whether the request was approved or denied.
func isAnswered(csr *certificatesv1.CertificateSigningRequest) bool {
	return wasApproved(csr) || findCondition(csr, certificatesv1.CertificateDenied) != nil
}

// refused returns why a request got no certificate: the denial, or the signer's failure; nil
// when neither happened.
func refused(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequestCondition {
	if c := findCondition(csr, certificatesv1.CertificateDenied); c != nil {
		return c
	}
	return findCondition(csr, certificatesv1.CertificateFailed)
}

// answeredAt is when the request was last answered; when it was created if it was not.
func answeredAt(csr *certificatesv1.CertificateSigningRequest) time.Time {
	at := csr.CreationTimestamp
	for _, c := range csr.Status.Conditions {
		for _, t := range []metav1.Time{c.LastUpdateTime, c.LastTransitionTime} {
			if at.Before(&t) {
				at = t
			}
		}
	}
	return at.Time
}
