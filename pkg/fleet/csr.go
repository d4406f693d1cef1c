// SPDX-License-Identifier: Apache-2.0

package fleet

import (
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

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/identity"
)

// Request is one certificate request of a cluster that asks to be joined, or
// that renews its certificate.
type Request struct {
	// Cluster is the name asked for.
	Cluster string `json:"cluster"`
	// Name is that of the CertificateSigningRequest.
	Name string `json:"csr"`
	// Requester is the common name asked for:
	// system:open-cluster-management:<cluster>:<agent>.
	Requester string `json:"requester"`
	// User is who sent the request.
	User string `json:"user"`
	// Identity says what kind of user that is: "bootstrap SA", "bootstrap token",
	// "renewal", or the user's name.
	Identity string `json:"identity"`
	// Groups tells whether the user's groups are those of its kind.
	Groups bool `json:"groups"`
	// State is pending, approved, issued, denied, failed or untrusted.
	State string `json:"state"`
	// Reason says why a request is untrusted, was denied or could not be signed.
	Reason string `json:"reason,omitempty"`
	// Fingerprint is the sha256 of the requested public key. join shows it too.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Created is when it was sent.
	Created metav1.Time `json:"created"`
	// Holder is the agent that has the name and reports, when the request is of
	// another one.
	Holder string `json:"holder,omitempty"`
	// Labels are those that the cluster gave itself, while it is not let in.
	Labels []SelfLabel `json:"labels,omitempty"`

	object *unstructured.Unstructured
	// fix is what to do about an untrusted one, where it is known.
	fix string
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

// bootstrapTokenUser is the form of the user name of a bootstrap token.
var bootstrapTokenUser = regexp.MustCompile(`^system:bootstrap:([a-z0-9]{6})$`)

// parseRequest judges a CertificateSigningRequest. trusted are user names that
// an administrator vouches for; tokens are the known join tokens.
func parseRequest(u *unstructured.Unstructured, trusted []string, tokens []TokenInfo) Request {
	q := Request{Cluster: u.GetLabels()[clusterv1.LabelClusterName], Name: u.GetName(), Created: u.GetCreationTimestamp(), object: u, State: stateOf(u)}
	q.User, _, _ = unstructured.NestedString(u.Object, "spec", "username")
	asked, err := parseCSR(u)
	if asked != nil {
		q.Requester = asked.Subject.CommonName
		q.Fingerprint = fingerprint(asked)
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

// refusal returns, in one line, who or what refused a request and why.
func refusal(u *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if kind, _ := c["type"].(string); kind != "Denied" && kind != "Failed" {
			continue
		}
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		if said := strings.Trim(reason+": "+message, ": "); said != "" {
			return oneLine(said)
		}
		return "no reason was given"
	}
	return ""
}

// fingerprint is the sha256 of the requested public key.
func fingerprint(csr *x509.CertificateRequest) string {
	sum := sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	return hashPrefix + hex.EncodeToString(sum[:])
}

func parseCSR(u *unstructured.Unstructured) (*x509.CertificateRequest, error) {
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

// identify judges the sender of the request, by exact names and groups.
func (q *Request) identify(trusted []string, tokens []TokenInfo) error {
	groups, _, _ := unstructured.NestedStringSlice(q.object.Object, "spec", "groups")
	m := bootstrapTokenUser.FindStringSubmatch(q.User)
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
		return fmt.Errorf("it was sent by %q, which is no bootstrap identity", q.User)
	}
	if !q.Groups {
		return fmt.Errorf("the groups of %q are not those of its kind", q.User)
	}
	// The Secret of a token that has ended is gone; its groups stay on record.
	only := identity.BootstrapClusters(groups)
	if len(only) > 0 && m != nil && !slices.Contains(only, q.Cluster) {
		return fmt.Errorf("it was sent with token %s, which is for cluster %s only", m[1], strings.Join(only, ", "))
	}
	return q.bound(tokens)
}

// bound checks that a token which is for one cluster was used for that one.
func (q *Request) bound(tokens []TokenInfo) error {
	for i := range tokens {
		if t := &tokens[i]; t.used(q.object) && t.Cluster != "" && t.Cluster != q.Cluster {
			return fmt.Errorf("it was sent with token %s, which is for cluster %s only", t.ID, t.Cluster)
		}
	}
	return nil
}

func stateOf(u *unstructured.Unstructured) string {
	certificate, _, _ := unstructured.NestedString(u.Object, "status", "certificate")
	switch {
	case conditionTrue(u, "Denied"):
		return StateDenied
	case conditionTrue(u, "Failed"):
		return StateFailed
	case certificate != "":
		return StateIssued
	case conditionTrue(u, "Approved"):
		return StateApproved
	}
	return StatePending
}

func answered(u *unstructured.Unstructured) bool { return stateOf(u) != StatePending }

func approval(now time.Time) map[string]any {
	return answerCondition("Approved", "ApprovedByKubectlOCM", "accepted by kubectl ocm accept", now)
}

func denial(reason, message string, now time.Time) map[string]any {
	return answerCondition("Denied", reason, message, now)
}

func answerCondition(kind, reason, message string, now time.Time) map[string]any {
	at := now.UTC().Format(time.RFC3339)
	return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message, "lastUpdateTime": at, "lastTransitionTime": at}
}

// answer approves or denies a request. The object must be as it was judged: its
// resource version is sent along.
func answer(ctx context.Context, hub *Cluster, csr *unstructured.Unstructured, condition map[string]any) error {
	out := csr.DeepCopy()
	conditions, _, _ := unstructured.NestedSlice(out.Object, "status", "conditions")
	if err := unstructured.SetNestedSlice(out.Object, append(conditions, condition), "status", "conditions"); err != nil {
		return err
	}
	_, err := hub.Client.Resource(signingRequests).Update(ctx, out, metav1.UpdateOptions{FieldManager: FieldManager}, "approval")
	return err
}
