// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/review"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Hub answers what rules ask of the hub.
type Hub interface {
	// Allowed tells whether the user may do what the attributes say.
	Allowed(ctx context.Context, user authenticationv1.UserInfo, attributes authorizationv1.ResourceAttributes) (bool, error)
	// Namespace returns the metadata of a namespace, nil when there is none.
	Namespace(ctx context.Context, name string) (*metav1.ObjectMeta, error)
	// Denied tells whether a cluster was let in once and is not accepted now.
	Denied(ctx context.Context, cluster string) (bool, error)
	// Standing counts the works that would go with the namespace of a cluster that
	// stays: none where the cluster is not there or leaves. More than a page of them
	// count as one page.
	Standing(ctx context.Context, cluster string) (int, error)
	// JoinToken returns the join token with that credential id; ok is false when
	// the hub has none.
	JoinToken(ctx context.Context, credential string) (t JoinToken, ok bool, err error)
}

// live is the Hub that asks the API server each time, but for tokens.
type live struct {
	client dynamic.Interface
	tokens *watch.Collection[JoinToken]
}

// NewHub makes a Hub of the API server behind the client, which needs the
// rights to create subjectaccessreviews, to get namespaces and managedclusters, and
// to list the Secrets of join tokens; tokens is a collection of NewJoinTokens.
func NewHub(client dynamic.Interface, tokens *watch.Collection[JoinToken]) Hub {
	return live{client, tokens}
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Allowed passes the whole identity on: name, UID, groups and extra.
func (l live) Allowed(ctx context.Context, user authenticationv1.UserInfo, attributes authorizationv1.ResourceAttributes) (bool, error) {
	allowed, _, err := review.Access(ctx, l.client, &user, review.Right{Resource: &attributes})
	if err != nil {
		return false, internal(err)
	}
	return allowed, nil
}

// Namespace reads live: what a cache shows may be older than the request.
func (l live) Namespace(ctx context.Context, name string) (*metav1.ObjectMeta, error) {
	u, err := l.client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, internal(err))
	}
	return &metav1.ObjectMeta{Name: name, UID: u.GetUID(), Labels: u.GetLabels(), DeletionTimestamp: u.GetDeletionTimestamp()}, nil
}

var clusters = clusterv1.GroupVersion.WithResource("managedclusters")

// Denied reads live: a denial counts from its moment on. A cluster that leaves is
// not denied, because its add-ons may need works to end.
func (l live) Denied(ctx context.Context, cluster string) (bool, error) {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, l.client, clusters, "", cluster)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading managedcluster %s: %w", cluster, internal(err))
	}
	known := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionHubAccepted) != nil
	return known && !mc.Spec.HubAcceptsClient && mc.DeletionTimestamp == nil, nil
}

var works = workv1.GroupVersion.WithResource("manifestworks")

// countedWorks is the page that Standing reads.
const countedWorks = 50

// Standing reads live. A work that is being deleted already is not counted: somebody
// asked for that.
func (l live) Standing(ctx context.Context, cluster string) (int, error) {
	mc, err := l.client.Resource(clusters).Get(ctx, cluster, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && mc.GetDeletionTimestamp() != nil) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading managedcluster %s: %w", cluster, internal(err))
	}
	list, err := l.client.Resource(works).Namespace(cluster).List(ctx, metav1.ListOptions{Limit: countedWorks})
	if err != nil {
		return 0, fmt.Errorf("listing the works of %s: %w", cluster, internal(err))
	}
	n := 0
	for i := range list.Items {
		if list.Items[i].GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n, nil
}

// internal hides the API status of an error of our own request, which must not
// look like the answer to the user's.
func internal(err error) error { return fmt.Errorf("%s", err.Error()) }

// acceptRight is the right to accept a cluster, and to take that back.
func acceptRight(cluster string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Group: clusterv1.RegisterGroup, Resource: "managedclusters", Subresource: clusterv1.SubresourceAccept, Verb: "update", Name: cluster,
	}
}

// setRight is the right to put clusters into a set, or to bind it.
func setRight(set, subresource string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Group: clusterv1.GroupName, Resource: "managedclustersets", Subresource: subresource, Verb: "create", Name: set,
	}
}

// require turns a missing right into the answer 403.
func (s *Server) require(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes, message string) error {
	ok, err := s.o.Hub.Allowed(ctx, user, right)
	if err != nil || ok {
		return err
	}
	return forbidden(right, message)
}

func forbidden(right authorizationv1.ResourceAttributes, message string) error {
	resource := right.Resource
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: right.Group, Resource: resource}, right.Name, fmt.Errorf("%s", message))
}
