// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/origin"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
)

// kindName is the kind of the objects that the loop serves.
const kindName = "ManagedServiceAccount"

// State is everything that a decision depends on.
type State struct {
	// Now is by the clock of this process; Ahead is how far the clock of the cluster is ahead of
	// it, as far as is known from the last token.
	Now   time.Time
	Ahead time.Duration
	// Name is that of the ManagedServiceAccount, the account and the Secret. Namespace is that of
	// the accounts on the cluster.
	Name, Namespace string
	// Hub identifies the hub, see the annotation of that name.
	Hub string
	// CA holds the PEM certificates that verify the API server of the cluster.
	CA []byte
	// Asked is nil when nobody asks for the account any more.
	Asked *authenticationv1beta1.ManagedServiceAccount
	// Account is nil when there is none.
	Account *Account
	// Known is false until the hub has said whether the Secret exists; Unread is why it has not.
	// Secret is nil when there is none.
	Known  bool
	Unread error
	Secret *Secret
	// Verdict is what the cluster says of the token in the Secret.
	Verdict Verdict
	// Fresh is true when account and Secret were read from their API servers in this pass.
	Fresh bool
}

// Verdict is what a cluster says of a token.
type Verdict int

// Verdicts of a cluster. Unreviewed means that it was not asked.
const (
	Unreviewed Verdict = iota
	Accepted
	Refused
)

// Account is a ServiceAccount of the cluster.
type Account struct {
	UID types.UID
	// Created is true when an agent created it; Hub is the hub for which it did, empty if it did
	// not say.
	Created bool
	Hub     string
	// Allowed is true when the account consents to tokens for the hub.
	Allowed bool
}

// accountOf returns what counts of a ServiceAccount.
func accountOf(o metav1.Object) *Account {
	hub, created := origin.Of(o)
	return &Account{
		UID: o.GetUID(), Created: created, Hub: hub, Allowed: o.GetAnnotations()[authenticationv1beta1.AnnotationTokensAllowed] == labelled,
	}
}

// labelled is the value of labels and annotations that say yes.
const labelled = "true"

// Secret is the Secret of a ManagedServiceAccount on the hub.
type Secret struct {
	UID     types.UID
	Version string
	// Opaque is true when its type allows any keys.
	Opaque bool
	// Labelled is true when it has the label of our Secrets.
	Labelled bool
	Owners   []metav1.OwnerReference
	// Text is the token as it stands there, Token what it says if Readable.
	Text     string
	Token    Token
	Readable bool
	CA       []byte
	// More are its keys besides those of the contract, sorted.
	More []string
}

// secretOf returns what counts of a Secret.
func secretOf(s *corev1.Secret) *Secret {
	out := &Secret{
		UID: s.UID, Version: s.ResourceVersion, Opaque: s.Type == corev1.SecretTypeOpaque,
		Labelled: s.Labels[authenticationv1beta1.LabelManaged] == labelled, Owners: s.OwnerReferences,
		Text: string(s.Data[authenticationv1beta1.SecretKeyToken]), CA: s.Data[authenticationv1beta1.SecretKeyCA],
	}
	out.Token, out.Readable = parse(out.Text)
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		if key != authenticationv1beta1.SecretKeyToken && key != authenticationv1beta1.SecretKeyCA {
			out.More = append(out.More, key)
		}
	}
	return out
}

// ours reports whether the agent may write a Secret: it has the label, or a
// ManagedServiceAccount of its name owns it.
func (s *Secret) ours(name string) bool {
	return s.Opaque && (s.Labelled || slices.ContainsFunc(s.Owners, func(o metav1.OwnerReference) bool { return o.Kind == kindName && o.Name == name }))
}

// complete reports whether the Secret holds exactly what it should besides the token.
func (s *Secret) complete(owner metav1.OwnerReference, ca []byte) bool {
	return s.Labelled && len(s.More) == 0 && bytes.Equal(s.CA, ca) && len(s.Owners) == 1 && s.Owners[0] == owner
}

// owner returns the owner reference by which a Secret is deleted with its
// ManagedServiceAccount.
func owner(a *authenticationv1beta1.ManagedServiceAccount) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: authenticationv1beta1.GroupVersion.String(), Kind: kindName, Name: a.Name, UID: a.UID}
}

// subject returns the user name of the account.
func (s State) subject() string { return "system:serviceaccount:" + s.Namespace + ":" + s.Name }

// proven reports whether the token in the Secret is one of the account itself: whoever wrote
// it had tokens of this very account.
func (s State) proven() bool {
	return s.Secret != nil && s.Verdict == Accepted && s.Secret.Token.Subject == s.subject() && s.Secret.Token.Account == s.Account.UID
}

// disposes reports whether the account is the agent's own for this hub.
func (s State) disposes() bool {
	return s.Account.Created && (s.Account.Hub == "" || s.Account.Hub == s.Hub)
}
