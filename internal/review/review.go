// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	tokens   = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}
	accesses = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
)

// Bearer returns the user that the cluster recognizes as the bearer of a token; ok is
// false if it recognizes none. An error means that the cluster could not answer.
func Bearer(ctx context.Context, client dynamic.Interface, token string) (user authenticationv1.UserInfo, ok bool, err error) {
	r := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	r.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"))
	r, err = create(ctx, client, tokens, r)
	if err != nil {
		return user, false, fmt.Errorf("reviewing a token: %w", err)
	}
	return r.Status.User, r.Status.Authenticated, nil
}

// Right is one action on an API object or on a path. Exactly one of the two is set.
type Right struct {
	Resource *authorizationv1.ResourceAttributes
	Path     *authorizationv1.NonResourceAttributes
}

// Access reports whether a user may do something; why is the cluster's reason, and may be
// empty. The whole identity is passed on: name, UID, groups and extra. An error means
// that the cluster could not answer.
func Access(ctx context.Context, client dynamic.Interface, user *authenticationv1.UserInfo, right Right) (allowed bool, why string, err error) {
	r := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: right.Resource, NonResourceAttributes: right.Path,
	}}
	for key, values := range user.Extra {
		r.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	r.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"))
	r, err = create(ctx, client, accesses, r)
	if err != nil {
		return false, "", fmt.Errorf("reviewing the access of %s: %w", user.Username, err)
	}
	return r.Status.Allowed && !r.Status.Denied, r.Status.Reason, nil
}

// create creates a review and returns the answer.
func create[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, review P) (P, error) {
	u, err := typed.ToUnstructured(review)
	if err != nil {
		return nil, err
	}
	answer, err := client.Resource(resource).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return typed.FromUnstructured[T](answer)
}
