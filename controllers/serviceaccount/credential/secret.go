// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Limits of what is copied, in bytes. Tokens have one or two kilobytes.
const (
	maxToken = 16 << 10
	maxCA    = 128 << 10
)

// content is what of a Secret is copied.
type content struct{ Token, CA []byte }

// digest identifies a content. It is not a secret: tokens have hundreds of random bits.
type digest [sha256.Size]byte

// contentOf returns the content of a Secret, or why it is not copied.
func contentOf(data map[string][]byte) (content, error) {
	c := content{Token: data[authenticationv1beta1.SecretKeyToken], CA: data[authenticationv1beta1.SecretKeyCA]}
	switch {
	case len(c.Token) == 0:
		return c, errors.New("it holds no token")
	case len(c.Token) > maxToken:
		return c, fmt.Errorf("its token has more than %d bytes", maxToken)
	case len(c.CA) > maxCA:
		return c, fmt.Errorf("its %s has more than %d bytes", authenticationv1beta1.SecretKeyCA, maxCA)
	case slices.ContainsFunc(c.Token, func(b byte) bool { return b <= ' ' || b > '~' }):
		return c, errors.New("its token has characters that no token has")
	}
	return c, nil
}

func (c content) digest() digest {
	return sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(c.Token), c.Token, c.CA))
}

// source is what is kept of a Secret with a token.
type source struct {
	// Account is the UID of the ManagedServiceAccount that owns it; empty if none does.
	Account types.UID
	Digest  digest
	// Fault is why it is not copied; empty if nothing is wrong.
	Fault string
}

// keepSource reads a Secret of the namespace of a cluster.
func keepSource(u *unstructured.Unstructured) (source, bool) {
	s, err := typed.FromUnstructured[corev1.Secret](u)
	if err != nil {
		return source{}, false
	}
	out, _ := sourceOf(s)
	return out, true
}

// sourceOf reads a Secret of the namespace of a cluster. Only those that the agent wrote count: a
// ManagedServiceAccount can be named like any other Secret.
func sourceOf(s *corev1.Secret) (source, content) {
	var out source
	for _, owner := range s.OwnerReferences {
		if isKind(owner, authenticationv1beta1.GroupName, "ManagedServiceAccount") && owner.Name == s.Name {
			out.Account = owner.UID
		}
	}
	if s.Labels[authenticationv1beta1.LabelManaged] != "true" || s.Type != corev1.SecretTypeOpaque {
		out.Account = ""
	}
	c, err := contentOf(s.Data)
	if err != nil {
		out.Fault = err.Error()
		return out, content{}
	}
	out.Digest = c.digest()
	return out, c
}

// replica is what is kept of a copy.
type replica struct {
	Namespace, Name string
	UID             types.UID
	Version         string
	// Profile and ProfileUID are the ClusterProfile that controls it; empty if none does.
	Profile    string
	ProfileUID types.UID
	// Genuine is true when label and type are those of a copy.
	Genuine bool
	Digest  digest
	// Surplus are keys that no copy has.
	Surplus []string
}

// maxSurplus is how many keys of others are removed from a copy at a time.
const maxSurplus = 16

// keepReplica reads a Secret with the label of copies.
func keepReplica(u *unstructured.Unstructured) (replica, bool) {
	s, err := typed.FromUnstructured[corev1.Secret](u)
	if err != nil {
		return replica{}, false
	}
	return replicaOf(s), true
}

func replicaOf(s *corev1.Secret) replica {
	r := replica{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, Version: s.ResourceVersion,
		Genuine: s.Labels[authenticationv1beta1.LabelSyncedFrom] == s.Name && s.Type == corev1.SecretTypeOpaque,
	}
	if owner := metav1.GetControllerOf(s); owner != nil && isKind(*owner, multiclusterv1alpha1.GroupVersion.Group, "ClusterProfile") {
		r.Profile, r.ProfileUID = owner.Name, owner.UID
	}
	if c, err := contentOf(s.Data); err == nil {
		r.Digest = c.digest()
	}
	for key := range s.Data {
		if key != authenticationv1beta1.SecretKeyToken && key != authenticationv1beta1.SecretKeyCA && len(r.Surplus) < maxSurplus {
			r.Surplus = append(r.Surplus, key)
		}
	}
	slices.Sort(r.Surplus)
	return r
}

// isKind reports whether an owner is of a kind, in any version.
func isKind(owner metav1.OwnerReference, group, kind string) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == group && owner.Kind == kind
}
