// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
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

// maxMetadata bounds the labels and annotations of a request that is looked at,
// in bytes.
const maxMetadata = 8 << 10

// TrimRequest drops from a CSR in the cache what no loop reads. Of one that is
// too large to be an agent's it keeps neither request nor annotations: whoever
// may ask could fill the memory of the hub with them. Such a one is never
// answered, so nothing is written from what is kept.
func TrimRequest(in any) (any, error) {
	csr, ok := in.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return in, nil // a tombstone passes as it is
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

// Certificate is what counts of an issued certificate.
type Certificate struct {
	// User is its common name.
	User string
	// End is when it expires.
	End time.Time
}

// Request is a certificate request with the label of a cluster.
type Request struct {
	// CSR is the request as it is; it belongs to the cache.
	CSR *certificatesv1.CertificateSigningRequest
	// Agent is whom the certificate is for; the zero Agent where Fault is set.
	Agent identity.Agent
	// Fault tells why the request has not the form of an agent's; such a request
	// is never answered. It may be somebody else's.
	Fault error
	// Certificate is what was issued for the Agent; nil while there is none.
	Certificate *Certificate
	// MayRenew is true when the requester is that very agent and the API server
	// allows it to renew this cluster's certificates.
	MayRenew bool
	// Token is the id of the join token that an answered request was sent with;
	// empty where it is not known.
	Token string
	// Refusal tells why the token that it was sent with is not good for it.
	Refusal Refusal
	// Limited are the join tokens with a limit that an open request was sent with.
	Limited []Token
	// Waits is true for a request that needs a look at the API server in a later
	// pass: one pass makes a bounded number of them.
	Waits bool
}

// Requests is an index of all certificate requests by cluster. Each is parsed
// once, when it is seen first: who may ask may ask often. It is safe for
// concurrent use.
type Requests struct {
	mu       sync.RWMutex
	clusters map[string]map[types.UID]Request
	total    int
}

// newRequests makes an empty index.
func newRequests() *Requests { return &Requests{clusters: map[string]map[types.UID]Request{}} }

// Observe takes in a change: old is nil for a new request, current is nil for
// one that is gone.
func (q *Requests) Observe(old, current *certificatesv1.CertificateSigningRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var known Request
	if old != nil {
		cluster := old.Labels[clusterv1.LabelClusterName]
		before := len(q.clusters[cluster])
		known = q.clusters[cluster][old.UID]
		delete(q.clusters[cluster], old.UID)
		q.total -= before - len(q.clusters[cluster])
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
	if _, again := q.clusters[cluster][current.UID]; !again {
		q.total++
	}
	q.clusters[cluster][current.UID] = follow(known, current, cluster)
}

// Total is how many requests there are.
func (q *Requests) Total() int {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.total
}

// Clusters are the names that there are requests for, in no order.
func (q *Requests) Clusters() []string {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return slices.Collect(maps.Keys(q.clusters))
}

// follow is the request in its current form; what an earlier form told already
// is kept.
func follow(known Request, csr *certificatesv1.CertificateSigningRequest, cluster string) Request {
	r := Request{CSR: csr, Agent: known.Agent, Fault: known.Fault, Certificate: known.Certificate}
	if known.CSR == nil || known.CSR.UID != csr.UID || known.CSR.Labels[clusterv1.LabelClusterName] != cluster {
		r.Agent, r.Fault = check(csr, cluster)
		r.Certificate = nil
	}
	if r.Fault == nil && r.Certificate == nil && len(csr.Status.Certificate) > 0 {
		if c, err := parseCertificate(csr.Status.Certificate); err == nil && c.User == r.Agent.User() {
			r.Certificate = &c
		}
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

// Sent returns the clusters with open requests that were sent with a token.
func (q *Requests) Sent(credential string) []string {
	q.mu.RLock()
	defer q.mu.RUnlock()
	var out []string
	for cluster, requests := range q.clusters {
		for _, r := range requests {
			if r.Fault == nil && !answered(r.CSR) && slices.Contains(r.CSR.Spec.Extra[clusterv1.ExtraCredentialID], credential) {
				out = append(out, cluster)
				break
			}
		}
	}
	return out
}

// Approved returns what was approved of the requests that were sent with a token.
func (q *Requests) Approved(credential string) []identity.Approval {
	q.mu.RLock()
	defer q.mu.RUnlock()
	var out []identity.Approval
	for cluster, requests := range q.clusters {
		for _, r := range requests {
			credentials := r.CSR.Spec.Extra[clusterv1.ExtraCredentialID]
			if r.Fault == nil && slices.Contains(credentials, credential) && approved(r.CSR) {
				out = append(out, identity.Approval{Cluster: cluster, Credentials: credentials})
				break
			}
		}
	}
	return out
}

// approved tells whether a request has a certificate or is about to get it.
func approved(csr *certificatesv1.CertificateSigningRequest) bool {
	return find(csr, certificatesv1.CertificateApproved) != nil && refused(csr) == nil
}

// check tells whether the CSR is one of the cluster's agents for a client
// certificate; others are not ours to answer.
func check(csr *certificatesv1.CertificateSigningRequest, cluster string) (identity.Agent, error) {
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

func parseCertificate(raw []byte) (Certificate, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return Certificate{}, fmt.Errorf("reading an issued certificate: no PEM block")
	}
	issued, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Certificate{}, fmt.Errorf("reading an issued certificate: %w", err)
	}
	return Certificate{User: issued.Subject.CommonName, End: issued.NotAfter}, nil
}

// find returns the condition of a type, or nil.
func find(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range csr.Status.Conditions {
		if csr.Status.Conditions[i].Type == kind {
			return &csr.Status.Conditions[i]
		}
	}
	return nil
}

// answered tells whether somebody approved or denied the request.
func answered(csr *certificatesv1.CertificateSigningRequest) bool {
	return find(csr, certificatesv1.CertificateApproved) != nil || find(csr, certificatesv1.CertificateDenied) != nil
}

// refused returns why a request got no certificate: the denial, or that the
// signer failed; nil when neither happened.
func refused(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequestCondition {
	if c := find(csr, certificatesv1.CertificateDenied); c != nil {
		return c
	}
	return find(csr, certificatesv1.CertificateFailed)
}

// answeredAt is when the request was answered last.
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
