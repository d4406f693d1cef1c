// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// review sends a review, of which nothing is stored, and returns the API server's answer.
func review(ctx context.Context, c *fleet.Cluster, resource schema.GroupVersionResource, kind string,
	content map[string]any) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	return c.Client.Resource(resource).Create(ctx, u, metav1.CreateOptions{})
}

// WhoAmI asks the API server for the user name of the caller.
func WhoAmI(ctx context.Context, c *fleet.Cluster) (string, error) {
	answer, err := review(ctx, c, fleet.SelfReviews, "SelfSubjectReview", map[string]any{})
	if err != nil {
		return "", err
	}
	user, _, _ := unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	return user, nil
}

// joinRights are the rights that an agent needs to ask to join.
var joinRights = []fleet.Right{
	{Resource: fleet.ManagedClusters, Verbs: []string{"create", "get"}},
	{Resource: fleet.SigningRequests, Verbs: []string{"create", "get", "list", "watch"}},
}

// Usable returns why a token cannot be used to join. With onlyReads it sends a read instead of
// the reviews, which are never stored either.
func Usable(ctx context.Context, hub *fleet.Cluster, onlyReads bool) error {
	if onlyReads {
		_, err := hub.Client.Resource(fleet.ManagedClusters).Get(ctx, "does-not-exist", metav1.GetOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		return Rejected(hub, err)
	}
	user, err := WhoAmI(ctx, hub)
	if err != nil {
		return Rejected(hub, err)
	}
	missing, err := fleet.MissingRights(ctx, hub, joinRights)
	if err != nil {
		return Rejected(hub, err)
	}
	if len(missing) > 0 {
		return &fleet.Error{Message: "the token may not join clusters to " + hub.Server(), Cause: fmt.Sprintf("%s lacks: %s", user, strings.Join(missing, ", ")),
			Fix: NewToken.With()}
	}
	return nil
}

// Rejected explains why a hub does not accept the token of a connection.
func Rejected(hub *fleet.Cluster, err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return &fleet.Error{Message: "the hub at " + hub.Server() + " rejects the token", Cause: whyRejected(hub.Config.BearerToken),
			Fix: NewToken.With(), Err: err}
	case apierrors.IsForbidden(err):
		return &fleet.Error{Message: "the token may not join clusters to " + hub.Server(), Cause: fleet.OneLine(err.Error()), Fix: NewToken.With(), Err: err}
	}
	return fleet.Explain("checking the token", hub, err)
}

// whyRejected returns what a token that a hub does not accept shows about the reason. Its
// claims are not verified: they are only shown to its owner.
func whyRejected(token string) string {
	const unknown = "it is wrong, expired or revoked, or belongs to another hub"
	claims, err := claimsOf(token)
	if err != nil {
		return unknown
	}
	var said []string
	if claims.Expires > 0 {
		said = append(said, "ends at "+time.Unix(int64(claims.Expires), 0).UTC().Format(time.RFC3339))
	}
	if len(claims.Audiences) > 0 {
		said = append(said, "is for the audience "+strings.Join(claims.Audiences, ", "))
	}
	if claims.Issuer != "" {
		said = append(said, "comes from "+claims.Issuer)
	}
	if len(said) == 0 {
		return unknown
	}
	return unknown + "; according to its claims it " + fleet.OneLine(strings.Join(said, ", "))
}

// Expiry returns when a token says that it expires; zero when it does not say so, or is no token of
// an API server. Nothing is verified.
func Expiry(token string) time.Time {
	claims, err := claimsOf(token)
	if err != nil || claims.Expires <= 0 || claims.Expires > float64(1<<40) {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0)
}

// claims are the claims of a service account token.
type claims struct {
	ID        string    `json:"jti"`
	Issuer    string    `json:"iss"`
	Audiences audiences `json:"aud"`
	Expires   float64   `json:"exp"`
}

// audiences of a token: one, or a list.
type audiences []string

// UnmarshalJSON reads both forms.
func (a *audiences) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(a))
}

// claimsOf decodes a token without verifying it.
func claimsOf(token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, errors.New("the API server's token is not a JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errors.New("the API server's token cannot be read")
	}
	var out claims
	if err := json.Unmarshal(raw, &out); err != nil {
		return claims{}, errors.New("the claims of the API server's token cannot be read")
	}
	return out, nil
}

// credentialID returns the credential id that the API server derives from a service account
// token. Servers before 1.30 have none; then it is empty.
func credentialID(token string) (string, error) {
	said, err := claimsOf(token)
	if err != nil || said.ID == "" {
		return "", err
	}
	return "JTI=" + said.ID, nil
}
