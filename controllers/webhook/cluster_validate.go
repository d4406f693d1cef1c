// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// validateCluster refuses what a ManagedCluster must not be, and what the
// requester may not make of it (registration.md 4.2).
func (s *Server) validateCluster(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	mc, old, err := objects[clusterv1.ManagedCluster](r)
	if err != nil {
		return nil, err
	}
	if mc.Name == "" {
		mc.Name = r.Name
	}
	for _, check := range []func() error{
		func() error { return checkName(mc, old) },
		func() error { return checkClients(mc, old) },
		func() error { return checkOwnAnnotations(mc, old) },
		func() error { return checkAgent(mc, old, r.UserInfo) },
		func() error { return s.checkAccept(ctx, mc, old, r.UserInfo) },
		func() error { return s.checkSet(ctx, mc, old, r.UserInfo) },
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// accepts tells whether the change accepts the cluster.
func accepts(mc, old *clusterv1.ManagedCluster) bool {
	return mc.Spec.HubAcceptsClient && (old == nil || !old.Spec.HubAcceptsClient)
}

// checkName wants a name that the hub can use; clusters whose name was allowed
// once can still be changed, but not accepted.
func checkName(mc, old *clusterv1.ManagedCluster) error {
	if old != nil && !accepts(mc, old) {
		return nil
	}
	if err := identity.CheckName(mc.Name); err != nil {
		return apierrors.NewBadRequest("metadata.name: " + err.Error())
	}
	return nil
}

// checkClients wants addresses with scheme https; those that stand already are
// not looked at again.
func checkClients(mc, old *clusterv1.ManagedCluster) error {
	if old != nil && reflect.DeepEqual(mc.Spec.ManagedClusterClientConfigs, old.Spec.ManagedClusterClientConfigs) {
		return nil
	}
	for i, c := range mc.Spec.ManagedClusterClientConfigs {
		u, err := url.Parse(c.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return apierrors.NewBadRequest(fmt.Sprintf("url %q is invalid in client configs: spec.managedClusterClientConfigs[%d].url must begin with https:// and name a host", c.URL, i))
		}
	}
	return nil
}

// checkOwnAnnotations refuses changes of what only the hub writes.
func checkOwnAnnotations(mc, old *clusterv1.ManagedCluster) error {
	if old == nil {
		return nil
	}
	if mc.Annotations[clusterv1.AnnotationCreator] != old.Annotations[clusterv1.AnnotationCreator] {
		return apierrors.NewBadRequest("metadata.annotations: " + clusterv1.AnnotationCreator + " cannot be changed")
	}
	adopted, before := mc.Annotations[clusterv1.AnnotationAdoptedNamespace], old.Annotations[clusterv1.AnnotationAdoptedNamespace]
	if adopted != before && !accepts(mc, old) {
		return apierrors.NewBadRequest("metadata.annotations: " + clusterv1.AnnotationAdoptedNamespace + " is set by the hub when a cluster is accepted")
	}
	return nil
}

// checkAccept wants the right to accept, for giving and for taking it, and a
// namespace that the cluster can have.
func (s *Server) checkAccept(ctx context.Context, mc, old *clusterv1.ManagedCluster, user authenticationv1.UserInfo) error {
	accepting := accepts(mc, old)
	if !accepting && (old == nil || mc.Spec.HubAcceptsClient == old.Spec.HubAcceptsClient) {
		return nil
	}
	right := acceptRight(mc.Name)
	if err := s.require(ctx, user, right, fmt.Sprintf("user %q cannot update the field HubAcceptsClient", user.Username)); err != nil || !accepting {
		return err
	}
	ns, err := s.o.Hub.Namespace(ctx, mc.Name)
	if err != nil || ns == nil {
		return err
	}
	if ns.DeletionTimestamp != nil {
		return forbidden(right, fmt.Sprintf("namespace %s is terminating; accept the cluster when it is gone", mc.Name))
	}
	if ns.Labels[clusterv1.LabelClusterName] == mc.Name || mc.Annotations[clusterv1.AnnotationAdoptedNamespace] == string(ns.UID) {
		return nil
	}
	return forbidden(right, fmt.Sprintf("namespace %s was there before and user %q may not update it; it would be given to the cluster", mc.Name, user.Username))
}

// checkSet wants the right to join, of the set that is left and of the set that
// is entered.
func (s *Server) checkSet(ctx context.Context, mc, old *clusterv1.ManagedCluster, user authenticationv1.UserInfo) error {
	var before string
	if old != nil {
		before = old.Labels[clusterv1.LabelClusterSet]
	}
	now := mc.Labels[clusterv1.LabelClusterSet]
	if before == now {
		return nil
	}
	for _, set := range []string{before, now} {
		if set == "" {
			continue
		}
		message := fmt.Sprintf("user %q cannot add clusters to, or remove them from, set %q", user.Username, set)
		if err := s.require(ctx, user, setRight(set, clusterv1.SubresourceJoin), message); err != nil {
			return err
		}
	}
	return nil
}

// checkAgent holds an agent to its own ManagedCluster, and of that to its client
// configs and its own annotations. What an agent could change else would attract
// workloads, accept itself, or keep or delete hub objects.
func checkAgent(mc, old *clusterv1.ManagedCluster, user authenticationv1.UserInfo) error {
	clusters, agent := identity.Clusters(user.Groups)
	if !agent {
		return nil
	}
	refuse := func(what string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: clusterv1.GroupName, Resource: "managedclusters"}, mc.Name,
			fmt.Errorf("agent %q cannot change %s", user.Username, what))
	}
	if len(clusters) != 1 || clusters[0] != mc.Name {
		return refuse("the object of another cluster")
	}
	if parsed, ok := identity.ParseUser(user.Username); ok && parsed.Cluster != mc.Name {
		return refuse("the object of another cluster")
	}
	if old == nil {
		if mc.Spec.HubAcceptsClient {
			return refuse("spec.hubAcceptsClient")
		}
		return nil
	}
	specs := []*clusterv1.ManagedClusterSpec{mc.Spec.DeepCopy(), old.Spec.DeepCopy()}
	for _, spec := range specs {
		spec.ManagedClusterClientConfigs = nil
	}
	if !reflect.DeepEqual(specs[0], specs[1]) {
		return refuse("its spec besides managedClusterClientConfigs")
	}
	switch {
	case !maps.Equal(mc.Labels, old.Labels):
		return refuse("labels")
	case !maps.Equal(hubAnnotations(mc.Annotations), hubAnnotations(old.Annotations)):
		return refuse("annotations besides " + clusterv1.AnnotationPrefixAgent + "*")
	case !slices.Equal(mc.Finalizers, old.Finalizers):
		return refuse("finalizers")
	case !reflect.DeepEqual(mc.OwnerReferences, old.OwnerReferences):
		return refuse("ownerReferences")
	}
	return nil
}

// hubAnnotations are those that agents have no say in.
func hubAnnotations(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, clusterv1.AnnotationPrefixAgent) })
	return out
}
