// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Request is a certificate request of a cluster's agent, already checked for
// its form.
type Request struct {
	// CSR is the request as it is.
	CSR *certificatesv1.CertificateSigningRequest
	// Agent is whom the certificate is for.
	Agent identity.Agent
	// MayRenew is true when the requester is that very agent and the API server
	// allows it to renew this cluster's certificates.
	MayRenew bool
}

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

// Decision is a plan for the ManagedCluster and the answers to its requests.
type Decision struct {
	reconcile.Plan
	// Verdicts are given before the plan is carried out.
	Verdicts []Verdict
}

// Decide is pure.
func Decide(s State) Decision {
	if s.Cluster == nil || s.Cluster.DeletionTimestamp != nil {
		return Decision{}
	}
	mc := s.Cluster.DeepCopy()
	note(s, mc)
	d := Decision{Plan: reconcile.Plan{Object: mc}}
	holder := mc.Annotations[clusterv1.AnnotationAgentName]
	duplicate := ""
	for _, r := range s.Requests {
		if answered(r.CSR) {
			if denied(r.CSR) == clusterv1.ReasonDuplicateClusterName {
				duplicate = duplicateMessage(r, holder)
			}
			continue
		}
		switch {
		case holder != "" && holder != r.Agent.Name && s.Alive:
			duplicate = duplicateMessage(r, holder)
			d.Verdicts = append(d.Verdicts, answer(s, r, certificatesv1.CertificateDenied, clusterv1.ReasonDuplicateClusterName, duplicate))
		case r.MayRenew:
			d.Verdicts = append(d.Verdicts, answer(s, r, certificatesv1.CertificateApproved, clusterv1.ReasonAutoApproved,
				"The agent renews its own certificate"))
		case slices.Contains(s.AutoApprove, r.CSR.Spec.Username):
			d.Verdicts = append(d.Verdicts, answer(s, r, certificatesv1.CertificateApproved, clusterv1.ReasonAutoApproved,
				fmt.Sprintf("%s may register clusters without a person", r.CSR.Spec.Username)))
		}
	}
	judgeName(s, mc, duplicate)
	for _, v := range d.Verdicts {
		d.Events = append(d.Events, v.Event)
	}
	return d
}

// note keeps in annotations who got the last certificate, and until when it
// lives; requests come oldest first, so the newest has the last word.
func note(s State, mc *clusterv1.ManagedCluster) {
	for _, r := range s.Requests {
		if len(r.CSR.Status.Certificate) == 0 {
			continue
		}
		issued, err := parseCertificate(r.CSR.Status.Certificate)
		if err != nil || issued.Subject.CommonName != r.Agent.User() {
			continue
		}
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationAgentName, r.Agent.Name)
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationCertificateExpires, issued.NotAfter.UTC().Format(time.RFC3339))
	}
}

func parseCertificate(raw []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("reading an issued certificate: no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

func answered(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
	})
}

// denied returns the reason of a denial, or empty.
func denied(csr *certificatesv1.CertificateSigningRequest) string {
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied {
			return c.Reason
		}
	}
	return ""
}

func duplicateMessage(r Request, holder string) string {
	return fmt.Sprintf("Cluster name %s is held by agent %s, which is alive; agent %s must join under another name, or agent %s must be removed first",
		r.Agent.Cluster, holder, r.Agent.Name, holder)
}

// answer is the request with an approval or a denial added.
func answer(s State, r Request, kind certificatesv1.RequestConditionType, reason, message string) Verdict {
	csr := r.CSR.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: metav1.NewTime(s.Now),
	})
	event := reconcile.Event{Type: corev1.EventTypeNormal, Reason: "ManagedClusterCSRAutoApproved", Namespace: r.Agent.Cluster, Message: message}
	if kind == certificatesv1.CertificateDenied {
		event.Type, event.Reason = corev1.EventTypeWarning, clusterv1.ReasonDuplicateClusterName
	}
	return Verdict{CSR: csr, Event: event}
}

// judgeName keeps the condition DuplicateClusterName: it stands while a request
// that was denied for it is there.
func judgeName(s State, mc *clusterv1.ManagedCluster, duplicate string) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDuplicateClusterName)
	c := metav1.Condition{
		Type: clusterv1.ConditionDuplicateClusterName, Status: metav1.ConditionTrue,
		Reason: clusterv1.ReasonDuplicateClusterName, Message: duplicate, ObservedGeneration: mc.Generation,
	}
	if duplicate == "" {
		if have == nil {
			return
		}
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, clusterv1.ReasonNoDuplicate, "One agent holds the name"
	}
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return
	}
	reconcile.SetCondition(&mc.Status.Conditions, c, s.Now)
}
