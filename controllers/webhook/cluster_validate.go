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

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// validateCluster refuses invalid ManagedClusters, and changes that the requester may not
// make.
func (s *Server) validateCluster(ctx context.Context, c clusterChange) error {
	if c.Name != "" {
		// The name in the request counts, because the API server writes to it, whatever the
		// object says.
		c.now.Name = c.Name
	}
	for _, check := range []func(context.Context, clusterChange) error{
		checkName, s.checkToken, checkJoiner, checkClients, s.checkMetadata, checkLease, checkTaints, checkOwnAnnotations, checkAgent,
		s.checkImport, s.checkAccept, s.checkSet,
	} {
		if err := check(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

type clusterChange = change[clusterv1.ManagedCluster]

var clusterResource = clusters.GroupResource()

// accepts reports whether the change accepts the cluster.
func accepts(c clusterChange) bool {
	return c.now.Spec.HubAcceptsClient && !c.old.Spec.HubAcceptsClient
}

// checkName requires a name that the hub can use; stored clusters with another name can still
// be changed, but not accepted.
func checkName(_ context.Context, c clusterChange) error {
	if !c.creates && !accepts(c) {
		return nil
	}
	if err := identity.CheckName(c.now.Name); err != nil {
		return badRequest("metadata.name: %s", err)
	}
	return nil
}

// checkClients requires https URLs; unchanged client configs are not checked again.
func checkClients(_ context.Context, c clusterChange) error {
	configs := c.now.Spec.ManagedClusterClientConfigs
	if reflect.DeepEqual(configs, c.old.Spec.ManagedClusterClientConfigs) {
		return nil
	}
	size := 0
	for i, c := range configs {
		u, err := url.Parse(c.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return refusal{
				StatusError: apierrors.NewBadRequest(fmt.Sprintf("url %q is invalid in client configs", c.URL)),
				more:        fmt.Sprintf("spec.managedClusterClientConfigs[%d].url must begin with https:// and name a host", i),
			}
		}
		size += len(c.URL) + len(c.CABundle)
	}
	if n := len(configs); n > maxClients || size > maxClientBytes {
		return badRequest("spec.managedClusterClientConfigs: %d entries of %d bytes, more than %d entries or %d bytes", n, size, maxClients, maxClientBytes)
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
func (s *Server) checkMetadata(_ context.Context, c clusterChange) error {
	size := metadataSize(c.now)
	if size <= maxMetadata || s.isHub(c.UserInfo) || size <= metadataSize(c.old) {
		return nil
	}
	return badRequest("metadata.labels, metadata.annotations, metadata.finalizers and spec.taints: %d bytes together, more than %d", size, maxMetadata)
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
func checkLease(_ context.Context, c clusterChange) error {
	seconds := c.now.Spec.LeaseDurationSeconds
	if seconds == c.old.Spec.LeaseDurationSeconds || (seconds >= 0 && seconds <= maxLeaseSeconds) {
		return nil
	}
	return badRequest("spec.leaseDurationSeconds: %d is not between 1 and %d; leave it out for %d",
		seconds, maxLeaseSeconds, clusterv1.DefaultLeaseDurationSeconds)
}

// checkTaints requires keys in the form of label keys and printable values; stored taints may
// stay.
func checkTaints(_ context.Context, c clusterChange) error {
	known := map[string]bool{}
	for _, t := range c.old.Spec.Taints {
		known[t.Key+"="+t.Value] = true
	}
	for i, t := range c.now.Spec.Taints {
		if known[t.Key+"="+t.Value] {
			continue
		}
		if problems := validation.IsQualifiedName(t.Key); len(problems) > 0 {
			return badRequest("spec.taints[%d].key: %q: %s", i, t.Key, strings.Join(problems, "; "))
		}
		if strings.ContainsFunc(t.Value, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return badRequest("spec.taints[%d].value: %q contains unprintable characters", i, t.Value)
		}
	}
	return nil
}

// checkOwnAnnotations refuses changes of annotations that only the hub writes.
func checkOwnAnnotations(_ context.Context, c clusterChange) error {
	changed := func(key string) bool { return !c.creates && c.now.Annotations[key] != c.old.Annotations[key] }
	switch {
	case changed(clusterv1.AnnotationCreator):
		return badRequest("metadata.annotations: %s cannot be changed", clusterv1.AnnotationCreator)
	case changed(clusterv1.AnnotationAdoptedNamespace) && !accepts(c):
		return badRequest("metadata.annotations: %s is set by the hub when a cluster is accepted", clusterv1.AnnotationAdoptedNamespace)
	}
	return nil
}

// checkAccept requires the right to accept for granting and for revoking acceptance, and a
// namespace that the cluster can have.
func (s *Server) checkAccept(ctx context.Context, c clusterChange) error {
	if c.now.Spec.HubAcceptsClient == c.old.Spec.HubAcceptsClient {
		return nil
	}
	mc, user := c.now, c.UserInfo.Username
	right := authorizationv1.ResourceAttributes{
		Group: clusterv1.RegisterGroup, Resource: "managedclusters", Subresource: clusterv1.SubresourceAccept, Verb: "update", Name: mc.Name,
	}
	if err := s.requireRight(ctx, c.UserInfo, right, "user %q cannot update the field HubAcceptsClient", user); err != nil || !accepts(c) {
		return err
	}
	ns, err := s.o.Hub.Namespace(ctx, mc.Name)
	switch {
	case err != nil || ns == nil:
		return err
	case ns.DeletionTimestamp != nil:
		return forbidden(resourceOf(right), mc.Name, "namespace %s is terminating; accept the cluster when it is gone", mc.Name)
	case ns.Labels[clusterv1.LabelClusterName] == mc.Name || mc.Annotations[clusterv1.AnnotationAdoptedNamespace] == string(ns.UID):
		return nil
	}
	return forbidden(resourceOf(right), mc.Name, "namespace %s already exists and user %q may not update it; it would be handed to the cluster", mc.Name, user)
}

// checkSet requires the right to join both the old set and the new set.
func (s *Server) checkSet(ctx context.Context, c clusterChange) error {
	before, now := c.old.Labels[clusterv1.LabelClusterSet], c.now.Labels[clusterv1.LabelClusterSet]
	if before == now {
		return nil
	}
	for _, set := range []string{before, now} {
		if set == "" {
			continue
		}
		if err := s.requireRight(ctx, c.UserInfo, setRight(set, clusterv1.SubresourceJoin),
			"user %q cannot add clusters to, or remove them from, set %q", c.UserInfo.Username, set); err != nil {
			return err
		}
	}
	return nil
}

// checkAgent restricts an agent to the client configs and its own annotations of its own
// ManagedCluster. With other changes an agent could attract workloads, accept itself, or keep
// or delete objects of the hub.
func checkAgent(_ context.Context, c clusterChange) error {
	clusters, agent := identity.Clusters(c.UserInfo.Groups)
	if !agent {
		return nil
	}
	mc, old := c.now, c.old
	parsed, ok := identity.ParseUser(c.UserInfo.Username)
	spec, before := mc.Spec, old.Spec
	spec.ManagedClusterClientConfigs, before.ManagedClusterClientConfigs = nil, nil
	what := ""
	switch {
	case len(clusters) != 1 || clusters[0] != mc.Name || ok && parsed.Cluster != mc.Name:
		what = "the object of another cluster"
	case c.creates && mc.Spec.HubAcceptsClient:
		what = "spec.hubAcceptsClient"
	case c.creates:
		return nil
	case !reflect.DeepEqual(spec, before):
		what = "its spec besides managedClusterClientConfigs"
	case !maps.Equal(mc.Labels, old.Labels):
		what = "labels"
	case !maps.Equal(hubAnnotations(mc.Annotations), hubAnnotations(old.Annotations)):
		what = "annotations besides " + clusterv1.AnnotationPrefixAgent + "*"
	case !slices.Equal(mc.Finalizers, old.Finalizers):
		what = "finalizers"
	case !reflect.DeepEqual(mc.OwnerReferences, old.OwnerReferences):
		what = "ownerReferences"
	default:
		return nil
	}
	return forbidden(clusterResource, mc.Name, "agent %q cannot change %s", c.UserInfo.Username, what)
}

// checkImport requires the right to read the kubeconfig of a Cluster of Cluster API from a user
// who names it: the hub reads it with its own rights, and installs there an agent of the cluster
// that the user chose.
func (s *Server) checkImport(ctx context.Context, c clusterChange) error {
	named := c.now.Annotations[clusterv1.AnnotationCAPICluster]
	namespace, name, ok := strings.Cut(named, "/")
	if !ok || named == c.old.Annotations[clusterv1.AnnotationCAPICluster] {
		return nil
	}
	right := authorizationv1.ResourceAttributes{Resource: "secrets", Verb: "get", Namespace: namespace, Name: name + clusterv1.SecretSuffixCAPI}
	ok, err := s.o.Hub.Allowed(ctx, c.UserInfo, right)
	if err != nil || ok {
		return err
	}
	return forbidden(clusterResource, c.now.Name, "metadata.annotations[%s]: user %q may not get Secret %s/%s, and so cannot have Cluster %s imported",
		clusterv1.AnnotationCAPICluster, c.UserInfo.Username, right.Namespace, right.Name, named)
}

// hubAnnotations returns the annotations that agents must not change.
func hubAnnotations(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, clusterv1.AnnotationPrefixAgent) })
	return out
}
