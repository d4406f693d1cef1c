// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
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

// Hub answers the questions that rules ask about the hub.
type Hub interface {
	// Allowed reports whether the user may do what the attributes describe.
	Allowed(ctx context.Context, user authenticationv1.UserInfo, attributes authorizationv1.ResourceAttributes) (bool, error)
	// Namespace returns the metadata of a namespace, nil if it does not exist.
	Namespace(ctx context.Context, name string) (*metav1.ObjectMeta, error)
	// Denied reports whether a cluster was accepted once and is not accepted now.
	Denied(ctx context.Context, cluster string) (bool, error)
	// CountWorks counts the works that would be deleted with the namespace of a cluster: none
	// if the cluster does not exist or is being deleted. At most countedWorks are counted.
	CountWorks(ctx context.Context, cluster string) (int, error)
	// JoinToken returns the join token with that credential id; ok is false if the hub has
	// none.
	JoinToken(ctx context.Context, credential string) (t JoinToken, ok bool, err error)
}

// live is a Hub that asks the API server each time, except for tokens, which it reads from a
// cache first.
type live struct {
	client dynamic.Interface
	tokens *watch.Collection[JoinToken]
}

// NewHub returns a Hub that asks the API server of client. The client needs permission to
// create subjectaccessreviews, to get namespaces and managedclusters, and to list
// manifestworks and the Secrets of join tokens. tokens is a collection of NewJoinTokens.
func NewHub(client dynamic.Interface, tokens *watch.Collection[JoinToken]) Hub {
	return live{client, tokens}
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Allowed passes the whole identity on: name, UID, groups and extra.
func (l live) Allowed(ctx context.Context, user authenticationv1.UserInfo, attributes authorizationv1.ResourceAttributes) (bool, error) {
	allowed, _, err := review.Access(ctx, l.client, &user, review.Right{Resource: &attributes})
	if err != nil {
		return false, hideStatus(err)
	}
	return allowed, nil
}

// Namespace reads live: a cache may be older than the request.
func (l live) Namespace(ctx context.Context, name string) (*metav1.ObjectMeta, error) {
	u, err := l.client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, hideStatus(err))
	}
	return &metav1.ObjectMeta{Name: name, UID: u.GetUID(), Labels: u.GetLabels(), DeletionTimestamp: u.GetDeletionTimestamp()}, nil
}

var clusters = clusterv1.GroupVersion.WithResource("managedclusters")

// Denied reads live: a denial takes effect at once. A cluster that is being deleted is not
// denied, because its add-ons may need works to clean up.
func (l live) Denied(ctx context.Context, cluster string) (bool, error) {
	mc, err := l.cluster(ctx, cluster)
	if mc == nil {
		return false, err
	}
	known := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionHubAccepted) != nil
	return known && !mc.Spec.HubAcceptsClient && mc.DeletionTimestamp == nil, nil
}

// cluster reads a cluster live; nil if it does not exist.
func (l live) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, l.client, clusters, "", name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading managedcluster %s: %w", name, hideStatus(err))
	}
	return mc, nil
}

var works = workv1.GroupVersion.WithResource("manifestworks")

// countedWorks is the page size with which CountWorks reads.
const countedWorks = 50

// CountWorks reads live. A work that is already being deleted is not counted: its removal was
// requested.
func (l live) CountWorks(ctx context.Context, cluster string) (int, error) {
	mc, err := l.cluster(ctx, cluster)
	if mc == nil || mc.DeletionTimestamp != nil {
		return 0, err
	}
	list, err := l.client.Resource(works).Namespace(cluster).List(ctx, metav1.ListOptions{Limit: countedWorks})
	if err != nil {
		return 0, fmt.Errorf("listing the works of %s: %w", cluster, hideStatus(err))
	}
	n := 0
	for i := range list.Items {
		if list.Items[i].GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n, nil
}

// hideStatus removes the API status from an error of the hub's own request, so that it is not
// taken for the answer to the user's request.
func hideStatus(err error) error { return errors.New(err.Error()) }

// setRight is the right to add clusters to a set, or to bind it.
func setRight(set, subresource string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Group: clusterv1.GroupName, Resource: "managedclustersets", Subresource: subresource, Verb: "create", Name: set,
	}
}

// requireRight returns a 403 error with the message if the user lacks the right.
func (s *Server) requireRight(
	ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes, format string, args ...any,
) error {
	ok, err := s.o.Hub.Allowed(ctx, user, right)
	if err != nil || ok {
		return err
	}
	return forbidden(resourceOf(right), right.Name, format, args...)
}

func resourceOf(right authorizationv1.ResourceAttributes) schema.GroupResource {
	return schema.GroupResource{Group: right.Group, Resource: right.Resource + "/" + right.Subresource}
}
