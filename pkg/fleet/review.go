// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// whoAmI asks the API server who we are. Nothing is stored.
func whoAmI(ctx context.Context, c *Cluster) (string, error) {
	review := &unstructured.Unstructured{Object: map[string]any{}}
	review.SetGroupVersionKind(schema.GroupVersionKind{Group: selfReviews.Group, Version: selfReviews.Version, Kind: "SelfSubjectReview"})
	answer, err := c.Client.Resource(selfReviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	user, _, _ := unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	return user, nil
}

// right is one thing that a token must be allowed to do.
type right struct{ group, resource, verb string }

// joinRights are what an agent needs to ask to be joined (registration.md 3.6).
var joinRights = []right{
	{managedClusters.Group, "managedclusters", "create"}, {managedClusters.Group, "managedclusters", "get"},
	{signingRequests.Group, "certificatesigningrequests", "create"}, {signingRequests.Group, "certificatesigningrequests", "get"},
	{signingRequests.Group, "certificatesigningrequests", "list"}, {signingRequests.Group, "certificatesigningrequests", "watch"},
}

// missingRights returns those of the rights that we do not have.
func missingRights(ctx context.Context, c *Cluster, want []right) ([]string, error) {
	var out []string
	for _, w := range want {
		review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"resourceAttributes": map[string]any{"group": w.group, "resource": w.resource, "verb": w.verb}}}}
		review.SetGroupVersionKind(schema.GroupVersionKind{Group: accessReviews.Group, Version: accessReviews.Version, Kind: "SelfSubjectAccessReview"})
		answer, err := c.Client.Resource(accessReviews).Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking for rights: %w", err)
		}
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
			out = append(out, w.verb+" "+w.resource)
		}
	}
	return out, nil
}

// newTokenFix helps where a token does not.
const newTokenFix = "kubectl ocm hub token --context <the hub's context>      then give the new token to join"

// checkToken tells why a token cannot be joined with. With reads only what is
// stored nowhere in any case is sent: a read instead of the reviews.
func checkToken(ctx context.Context, hub *Cluster, onlyReads bool) error {
	if onlyReads {
		_, err := hub.Client.Resource(managedClusters).Get(ctx, "does-not-exist", metav1.GetOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		return tokenError(hub, err)
	}
	user, err := whoAmI(ctx, hub)
	if err != nil {
		return tokenError(hub, err)
	}
	missing, err := missingRights(ctx, hub, joinRights)
	if err != nil {
		return tokenError(hub, err)
	}
	if len(missing) > 0 {
		return &Error{Message: "the token may not join clusters to " + hub.Server(), Cause: fmt.Sprintf("%s lacks: %s", user, strings.Join(missing, ", ")), Fix: newTokenFix}
	}
	return nil
}

func tokenError(hub *Cluster, err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return &Error{Message: "the hub at " + hub.Server() + " rejects the token", Cause: whyRejected(hub.Config.BearerToken), Fix: newTokenFix, Err: err}
	case apierrors.IsForbidden(err):
		return &Error{Message: "the token may not join clusters to " + hub.Server(), Cause: oneLine(err.Error()), Fix: newTokenFix, Err: err}
	}
	return explain("checking the token", hub, err)
}

// whyRejected tells what can be seen from a token that a hub does not take. What
// it says of itself is not verified: it is only shown to its owner.
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
	return unknown + "; by its own words it " + oneLine(strings.Join(said, ", "))
}
