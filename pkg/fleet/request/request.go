// SPDX-License-Identifier: Apache-2.0

package request

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// SelfLabel is a label that a cluster gave itself when it asked to join.
type SelfLabel struct {
	// Key and Value are the label.
	Key   string `json:"key"`
	Value string `json:"value"`
	// ReadBy names the placements and sets that select by its key: if the cluster is accepted
	// with the label, it may get what is meant for others.
	ReadBy []string `json:"readBy,omitempty"`
}

// Request is one certificate request of a cluster that asks to join, or that renews its
// certificate.
type Request struct {
	// Cluster is the requested name.
	Cluster string `json:"cluster"`
	// Name is that of the CertificateSigningRequest.
	Name string `json:"csr"`
	// Requester is the requested common name:
	// system:open-cluster-management:<cluster>:<agent>.
	Requester string `json:"requester"`
	// User is who sent the request.
	User string `json:"user"`
	// Identity is the kind of that user: "bootstrap SA", "bootstrap token", "renewal", or the
	// user's name.
	Identity string `json:"identity"`
	// Groups is true when the user's groups are those of its kind.
	Groups bool `json:"groups"`
	// State is pending, approved, issued, denied, failed or untrusted.
	State string `json:"state"`
	// Reason is why a request is untrusted, was denied or could not be signed.
	Reason string `json:"reason,omitempty"`
	// Fingerprint is the SHA-256 of the requested public key. join shows it too.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Created is when it was sent.
	Created metav1.Time `json:"created"`
	// Holder is the agent that has the name and reports, when the request is of another agent.
	Holder string `json:"holder,omitempty"`
	// Labels are those that the cluster gave itself, while it is not accepted.
	Labels []SelfLabel `json:"labels,omitempty"`

	// Object is the request as it was read.
	Object *unstructured.Unstructured `json:"-"`
	// fix is what to do about an untrusted request, when known.
	fix fleet.Fix
}

// The states of a Request.
const (
	StatePending   = "pending"
	StateApproved  = "approved"
	StateIssued    = "issued"
	StateDenied    = "denied"
	StateFailed    = "failed"
	StateUntrusted = "untrusted"
)

// BootstrapTokenUser matches the user name of a bootstrap token.
var BootstrapTokenUser = regexp.MustCompile(`^system:bootstrap:([a-z0-9]{6})$`)

// Parse evaluates a CertificateSigningRequest. trusted are user names that an administrator
// vouches for; tokens are the known join tokens.
func Parse(u *unstructured.Unstructured, trusted []string, tokens []Token) Request {
	q := Request{Cluster: u.GetLabels()[clusterv1.LabelClusterName], Name: u.GetName(), Created: u.GetCreationTimestamp(), Object: u, State: StateOf(u)}
	q.User, _, _ = unstructured.NestedString(u.Object, "spec", "username")
	asked, err := ParseCSR(u)
	if asked != nil {
		q.Requester = asked.Subject.CommonName
		q.Fingerprint = Fingerprint(asked)
	}
	if err == nil {
		_, err = identity.CheckRequest(asked, q.Cluster)
	}
	if err == nil {
		err = checkUsages(u)
	}
	if why := q.identify(trusted, tokens); err == nil {
		err = why
	}
	if err != nil && q.State == StatePending {
		q.State, q.Reason = StateUntrusted, err.Error()
	}
	if q.State == StateDenied || q.State == StateFailed {
		q.Reason = refusal(u)
	}
	return q
}

// refusal returns, in one line, who or what refused a request, and why.
func refusal(u *unstructured.Unstructured) string {
	for _, c := range fleet.ConditionsOf(u) {
		if c.Type == "Denied" || c.Type == "Failed" {
			return cmp.Or(fleet.OneLine(strings.Trim(c.Reason+": "+c.Message, ": ")), "no reason was given")
		}
	}
	return ""
}

// identify checks the sender of the request, by exact names and groups, and that a token for
// one cluster was used for that cluster.
func (q *Request) identify(trusted []string, tokens []Token) error {
	groups, _, _ := unstructured.NestedStringSlice(q.Object.Object, "spec", "groups")
	m := BootstrapTokenUser.FindStringSubmatch(q.User)
	switch {
	case q.User != "" && slices.Contains(trusted, q.User):
		q.Identity, q.Groups = q.User, true
		return nil
	case q.User == identity.BootstrapUser:
		q.Identity, q.Groups = "bootstrap SA", slices.Contains(groups, "system:serviceaccounts:"+operatorv1.NamespaceOperator)
	case m != nil:
		q.Identity, q.Groups = "bootstrap token", slices.Contains(groups, clusterv1.GroupBootstrap)
	case q.User != "" && q.User == q.Requester:
		q.Identity, q.Groups = "renewal", slices.Contains(groups, clusterv1.UserPrefix+q.Cluster)
	default:
		q.Identity = q.User
		return fmt.Errorf("it was sent by %q, which is not a bootstrap identity", q.User)
	}
	if !q.Groups {
		return fmt.Errorf("the groups of %q are not those of its kind", q.User)
	}
	// The Secret of an expired token is gone; the groups in the request remain.
	only := identity.BootstrapClusters(groups)
	if len(only) > 0 && m != nil && !slices.Contains(only, q.Cluster) {
		return fmt.Errorf("it was sent with token %s, which is for cluster %s only", m[1], strings.Join(only, ", "))
	}
	for i := range tokens {
		if t := &tokens[i]; t.Used(q.Object) && t.Cluster != "" && t.Cluster != q.Cluster {
			return fmt.Errorf("it was sent with token %s, which is for cluster %s only", t.ID, t.Cluster)
		}
	}
	return nil
}

// StateOf returns the state of a request from its conditions and its certificate.
func StateOf(u *unstructured.Unstructured) string {
	certificate, _, _ := unstructured.NestedString(u.Object, "status", "certificate")
	switch {
	case fleet.ConditionTrue(u, "Denied"):
		return StateDenied
	case fleet.ConditionTrue(u, "Failed"):
		return StateFailed
	case certificate != "":
		return StateIssued
	case fleet.ConditionTrue(u, "Approved"):
		return StateApproved
	}
	return StatePending
}

// Fingerprint returns the SHA-256 of the requested public key.
func Fingerprint(csr *x509.CertificateRequest) string {
	sum := sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	return trust.HashPrefix + hex.EncodeToString(sum[:])
}

// ParseCSR parses the X.509 request in a CertificateSigningRequest.
func ParseCSR(u *unstructured.Unstructured) (*x509.CertificateRequest, error) {
	text, _, _ := unstructured.NestedString(u.Object, "spec", "request")
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("its request is not base64")
	}
	return identity.ReadRequest(raw)
}

func checkUsages(u *unstructured.Unstructured) error {
	if signer, _, _ := unstructured.NestedString(u.Object, "spec", "signerName"); signer != clusterv1.SignerName {
		return fmt.Errorf("it asks the signer %q", signer)
	}
	usages, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "usages")
	for _, usage := range usages {
		if usage != "digital signature" && usage != "key encipherment" && usage != "client auth" {
			return fmt.Errorf("it asks for the usage %q", usage)
		}
	}
	return nil
}

// Answered reports whether a request has been approved or denied.
func Answered(u *unstructured.Unstructured) bool { return StateOf(u) != StatePending }

// Approval is the condition that approves a request.
func Approval(now time.Time) map[string]any {
	return answerCondition("Approved", "ApprovedByKubectlOCM", "accepted by a person", now)
}

// Denial is the condition that denies a request.
func Denial(reason, message string, now time.Time) map[string]any {
	return answerCondition("Denied", reason, message, now)
}

func answerCondition(kind, reason, message string, now time.Time) map[string]any {
	at := now.UTC().Format(time.RFC3339)
	return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message, "lastUpdateTime": at, "lastTransitionTime": at}
}

// Answer approves or denies a request. Its resource version is sent along, so that the answer
// is for the object that was checked.
func Answer(ctx context.Context, hub *fleet.Cluster, csr *unstructured.Unstructured, condition map[string]any) error {
	out := csr.DeepCopy()
	conditions, _, _ := unstructured.NestedSlice(out.Object, "status", "conditions")
	if err := unstructured.SetNestedSlice(out.Object, append(conditions, condition), "status", "conditions"); err != nil {
		return err
	}
	_, err := hub.Client.Resource(fleet.SigningRequests).Update(ctx, out, metav1.UpdateOptions{FieldManager: fleet.FieldManager}, "approval")
	return err
}
