// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// whoAmI asks the API server for the caller's user name. Nothing is stored.
func whoAmI(ctx context.Context, c *fleet.Cluster) (string, error) {
	review := &unstructured.Unstructured{Object: map[string]any{}}
	review.SetGroupVersionKind(schema.GroupVersionKind{Group: fleet.SelfReviews.Group, Version: fleet.SelfReviews.Version, Kind: "SelfSubjectReview"})
	answer, err := c.Client.Resource(fleet.SelfReviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	user, _, _ := unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	return user, nil
}

// right is one thing that a token must be allowed to do.
type right struct{ group, resource, verb string }

// joinRights are the rights that an agent needs to ask to join.
var joinRights = []right{
	{fleet.ManagedClusters.Group, "managedclusters", "create"}, {fleet.ManagedClusters.Group, "managedclusters", "get"},
	{fleet.SigningRequests.Group, "certificatesigningrequests", "create"}, {fleet.SigningRequests.Group, "certificatesigningrequests", "get"},
	{fleet.SigningRequests.Group, "certificatesigningrequests", "list"}, {fleet.SigningRequests.Group, "certificatesigningrequests", "watch"},
}

// missingRights returns the rights that the caller does not have.
func missingRights(ctx context.Context, c *fleet.Cluster, want []right) ([]string, error) {
	var out []string
	for _, w := range want {
		review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"resourceAttributes": map[string]any{"group": w.group, "resource": w.resource, "verb": w.verb}}}}
		review.SetGroupVersionKind(schema.GroupVersionKind{Group: fleet.AccessReviews.Group, Version: fleet.AccessReviews.Version, Kind: "SelfSubjectAccessReview"})
		answer, err := c.Client.Resource(fleet.AccessReviews).Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking for rights: %w", err)
		}
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
			out = append(out, w.verb+" "+w.resource)
		}
	}
	return out, nil
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
	user, err := whoAmI(ctx, hub)
	if err != nil {
		return Rejected(hub, err)
	}
	missing, err := missingRights(ctx, hub, joinRights)
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
