// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// JoinToken is what admission keeps of a join token; it contains no secret.
type JoinToken struct {
	// ID is the name that users know it by.
	ID string
	// Credential is its credential id in requests.
	Credential string
	// Cluster is the only cluster it is valid for; empty means any.
	Cluster string
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// NewJoinTokens returns the collection of the join tokens of a hub. The caller runs it.
func NewJoinTokens(client dynamic.Interface, log logr.Logger) *watch.Collection[JoinToken] {
	return watch.New(watch.Options[JoinToken]{
		Client: client, Resource: secrets, Namespace: operatorv1.NamespaceOperator, LabelSelector: clusterv1.LabelJoinToken, Keep: readJoinToken, Log: log,
	})
}

// readJoinToken reads a join token; false for one that is not issued yet.
func readJoinToken(u *unstructured.Unstructured) (JoinToken, bool) {
	s, err := typed.FromUnstructured[corev1.Secret](u)
	if err != nil {
		return JoinToken{}, false // not a Secret, so no token
	}
	t := JoinToken{ID: s.Labels[clusterv1.LabelJoinToken], Credential: string(s.Data[clusterv1.JoinTokenKeyCredentialID]),
		Cluster: string(s.Data[clusterv1.JoinTokenKeyCluster])}
	return t, t.Credential != ""
}

// JoinToken reads the cache, and the API server if the token is not cached: a token may be
// used as soon as it is created.
func (l live) JoinToken(ctx context.Context, credential string) (JoinToken, bool, error) {
	for _, t := range l.tokens.List() {
		if t.Credential == credential {
			return t, true, nil
		}
	}
	list, err := l.client.Resource(secrets).Namespace(operatorv1.NamespaceOperator).List(ctx, metav1.ListOptions{LabelSelector: clusterv1.LabelJoinToken})
	if err != nil {
		return JoinToken{}, false, fmt.Errorf("reading join tokens: %w", hideStatus(err))
	}
	for i := range list.Items {
		if t, ok := readJoinToken(&list.Items[i]); ok && t.Credential == credential {
			return t, true, nil
		}
	}
	return JoinToken{}, false, nil
}

// checkToken restricts a user who joins with a token to the cluster that the token is for.
// The certificate for another cluster would be denied anyway, but with automatic acceptance
// the hub would accept that cluster.
func (s *Server) checkToken(ctx context.Context, c clusterChange) error {
	if !c.creates {
		return nil
	}
	name, user := c.now.Name, c.UserInfo
	refuse := func(what string, clusters ...string) error {
		return forbidden(clusterResource, name, "%s is for cluster %s only; make one for this cluster on the hub, and join with it: "+
			"kubectl ocm hub token create --cluster %s", what, strings.Join(clusters, ", "), name)
	}
	if names := identity.BootstrapClusters(user.Groups); len(names) > 0 && !slices.Contains(names, name) {
		return refuse("the token of "+user.Username, names...)
	}
	if user.Username != identity.BootstrapUser {
		return nil
	}
	for _, credential := range user.Extra[clusterv1.ExtraCredentialID] {
		t, ok, err := s.o.Hub.JoinToken(ctx, credential)
		switch {
		case err != nil:
			return err
		case ok && t.Cluster != "" && t.Cluster != name:
			return refuse("join token "+t.ID, t.Cluster)
		}
	}
	return nil
}

// checkJoiner restricts a user who joins with a token to the annotations and finalizers that
// agents give a new cluster. The hub copies annotations to the cluster's add-ons, where one
// moves an add-on to another cluster and one holds its values; a foreign finalizer would keep
// the cluster from being removed.
func checkJoiner(_ context.Context, c clusterChange) error {
	if !c.creates || !identity.Joins(c.UserInfo.Username, c.UserInfo.Groups) {
		return nil
	}
	given := hubAnnotations(c.now.Annotations)
	delete(given, clusterv1.AnnotationCreator) // set by mutation, as are the finalizers below
	delete(given, corev1.LastAppliedConfigAnnotation)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		return forbidden(clusterResource, c.now.Name, "metadata.annotations[%s]: a cluster that joins with a token has annotations %s* only; "+
			"an administrator adds others", key, clusterv1.AnnotationPrefixAgent)
	}
	for _, f := range c.now.Finalizers {
		if f != clusterv1.FinalizerResourceCleanup && f != clusterv1.FinalizerAPIResourceCleanup {
			return forbidden(clusterResource, c.now.Name, "metadata.finalizers: a cluster that joins with a token has no finalizer %q", f)
		}
	}
	return nil
}
