// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var clustersResource = clusterv1.GroupVersion.WithResource("managedclusters")

// membership is what is kept of a ManagedCluster: whether it may have a tunnel.
type membership struct {
	name     string
	accepted bool
}

var (
	errNotAccepted = errors.New("the cluster is not accepted, or is being removed")
	errGone        = errors.New("the cluster was removed from the hub")
)

// watchClusters watches which clusters are accepted.
func watchClusters(client dynamic.Interface, log logr.Logger) *watch.Collection[membership] {
	return watch.New(watch.Options[membership]{
		Client: client, Resource: clustersResource, Log: log,
		Keep: func(u *unstructured.Unstructured) (membership, bool) {
			accepted, _, _ := unstructured.NestedBool(u.Object, "spec", "hubAcceptsClient")
			return membership{name: u.GetName(), accepted: accepted && u.GetDeletionTimestamp() == nil}, true
		},
		Same: func(before, now membership) bool { return before == now },
	})
}

// onCluster cuts the tunnel of a cluster that may no longer have one.
func (s *Server) onCluster(k reconcile.Key) {
	switch c, found := s.clusters.Get(k); {
	case !found:
		s.Registry.cut(k.Name, errGone)
		s.Registry.forget(k.Name)
	case !c.accepted:
		s.Registry.cut(k.Name, errNotAccepted)
	}
	s.report.wake(k.Name)
}
