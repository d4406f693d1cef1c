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
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// validateCluster refuses invalid ManagedClusters, and changes that the requester may not
// make.
func (s *Server) validateCluster(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	mc, old, err := objects[clusterv1.ManagedCluster](r)
	if err != nil {
		return nil, err
	}
	if r.Name != "" {
		// The name in the request counts, because the API server writes to it, whatever the
		// object says.
		mc.Name = r.Name
	}
	for _, check := range []func() error{
		func() error { return checkName(mc, old) },
		func() error { return s.checkToken(ctx, mc, old, r.UserInfo) },
		func() error { return checkClients(mc, old) },
		func() error { return s.checkMetadata(mc, old, r.UserInfo) },
		func() error { return checkLease(mc, old) },
		func() error { return checkTaints(mc, old) },
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

// accepts reports whether the change accepts the cluster.
func accepts(mc, old *clusterv1.ManagedCluster) bool {
	return mc.Spec.HubAcceptsClient && (old == nil || !old.Spec.HubAcceptsClient)
}

// checkName requires a name that the hub can use; stored clusters with another name can still
// be changed, but not accepted.
func checkName(mc, old *clusterv1.ManagedCluster) error {
	if old != nil && !accepts(mc, old) {
		return nil
	}
	if err := identity.CheckName(mc.Name); err != nil {
		return apierrors.NewBadRequest("metadata.name: " + err.Error())
	}
	return nil
}

// checkClients requires https URLs; unchanged client configs are not checked again.
func checkClients(mc, old *clusterv1.ManagedCluster) error {
	if old != nil && reflect.DeepEqual(mc.Spec.ManagedClusterClientConfigs, old.Spec.ManagedClusterClientConfigs) {
		return nil
	}
	size := 0
	for i, c := range mc.Spec.ManagedClusterClientConfigs {
		u, err := url.Parse(c.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return refusal{
				StatusError: apierrors.NewBadRequest(fmt.Sprintf("url %q is invalid in client configs", c.URL)),
				more:        fmt.Sprintf("spec.managedClusterClientConfigs[%d].url must begin with https:// and name a host", i),
			}
		}
		size += len(c.URL) + len(c.CABundle)
	}
	if n := len(mc.Spec.ManagedClusterClientConfigs); n > maxClients || size > maxClientBytes {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"spec.managedClusterClientConfigs: %d entries of %d bytes, more than %d entries or %d bytes",
			n, size, maxClients, maxClientBytes,
		))
	}
	return nil
}

// Bounds far above any real use. The hub keeps every cluster in memory, and agents may write
// their client configs.
const (
	maxClients      = 32
	maxClientBytes  = 256 << 10
	maxMetadata     = 32 << 10
	maxLeaseSeconds = 24 * 60 * 60
)

// checkMetadata limits how much memory of the hub a cluster may take, since any holder of a
// join token may create clusters. A stored cluster may stay as large as it is, and the hub
// may add to it. The annotation of kubectl apply does not count, because the hub does not
// keep it.
func (s *Server) checkMetadata(mc, old *clusterv1.ManagedCluster, user authenticationv1.UserInfo) error {
	size := metadataSize(mc)
	if size <= maxMetadata || s.isHub(user) || (old != nil && size <= metadataSize(old)) {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf(
		"metadata.labels, metadata.annotations, metadata.finalizers and spec.taints: %d bytes together, more than %d",
		size, maxMetadata,
	))
}

func metadataSize(mc *clusterv1.ManagedCluster) int {
	size := 0
	for _, m := range []map[string]string{mc.Labels, mc.Annotations} {
		for key, value := range m {
			size += len(key) + len(value)
		}
	}
	if applied, ok := mc.Annotations[corev1.LastAppliedConfigAnnotation]; ok {
		size -= len(corev1.LastAppliedConfigAnnotation) + len(applied)
	}
	for _, f := range mc.Finalizers {
		size += len(f)
	}
	for _, t := range mc.Spec.Taints {
		size += len(t.Key) + len(t.Value) + len(t.Effect)
	}
	return size
}

// checkLease requires a lease duration within bounds; a stored one may stay.
func checkLease(mc, old *clusterv1.ManagedCluster) error {
	seconds := mc.Spec.LeaseDurationSeconds
	if (old != nil && seconds == old.Spec.LeaseDurationSeconds) || (seconds >= 0 && seconds <= maxLeaseSeconds) {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf(
		"spec.leaseDurationSeconds: %d is not between 1 and %d; leave it out for %d",
		seconds, maxLeaseSeconds, clusterv1.DefaultLeaseDurationSeconds,
	))
}

// checkTaints requires keys in the form of label keys and printable values; stored taints may
// stay.
func checkTaints(mc, old *clusterv1.ManagedCluster) error {
	known := map[string]bool{}
	if old != nil {
		for _, t := range old.Spec.Taints {
			known[t.Key+"="+t.Value] = true
		}
	}
	for i, t := range mc.Spec.Taints {
		if known[t.Key+"="+t.Value] {
			continue
		}
		if problems := validation.IsQualifiedName(t.Key); len(problems) > 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("spec.taints[%d].key: %q: %s", i, t.Key, strings.Join(problems, "; ")))
		}
		if strings.ContainsFunc(t.Value, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return apierrors.NewBadRequest(fmt.Sprintf("spec.taints[%d].value: %q contains unprintable characters", i, t.Value))
		}
	}
	return nil
}

// checkOwnAnnotations refuses changes of annotations that only the hub writes.
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

// checkAccept requires the right to accept for granting and for revoking acceptance, and a
// namespace that the cluster can have.
func (s *Server) checkAccept(ctx context.Context, mc, old *clusterv1.ManagedCluster, user authenticationv1.UserInfo) error {
	accepting := accepts(mc, old)
	if !accepting && (old == nil || mc.Spec.HubAcceptsClient == old.Spec.HubAcceptsClient) {
		return nil
	}
	right := acceptRight(mc.Name)
	if err := s.requireRight(ctx, user, right, fmt.Sprintf("user %q cannot update the field HubAcceptsClient", user.Username)); err != nil || !accepting {
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
	return forbidden(right, fmt.Sprintf("namespace %s already exists and user %q may not update it; it would be handed to the cluster", mc.Name, user.Username))
}

// checkSet requires the right to join both the old set and the new set.
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
		if err := s.requireRight(ctx, user, setRight(set, clusterv1.SubresourceJoin), message); err != nil {
			return err
		}
	}
	return nil
}

// checkAgent restricts an agent to the client configs and its own annotations of its own
// ManagedCluster. With other changes an agent could attract workloads, accept itself, or keep
// or delete objects of the hub.
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

// hubAnnotations returns the annotations that agents must not change.
func hubAnnotations(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, clusterv1.AnnotationPrefixAgent) })
	return out
}
