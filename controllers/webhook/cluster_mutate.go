// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// mutateCluster fills in the parts of a ManagedCluster that the hub decides, and what its
// loops would otherwise have to write in separate requests: finalizers and the first taint.
func (s *Server) mutateCluster(ctx context.Context, c clusterChange) ([]operation, error) {
	before := c.now.DeepCopy()
	if c.creates {
		s.mutateNew(c.now, c.UserInfo)
	} else if err := s.mutateChanged(ctx, c); err != nil {
		return nil, err
	}
	// The API server fills in an absent duration; an explicit 0 means the same. A stored 0 is
	// left alone: the update may only change other fields.
	if c.now.Spec.LeaseDurationSeconds == 0 && (c.creates || c.old.Spec.LeaseDurationSeconds != 0) {
		c.now.Spec.LeaseDurationSeconds = clusterv1.DefaultLeaseDurationSeconds
	}
	if accepts(c) {
		if err := s.mutateAccepted(ctx, c.now, c.UserInfo); err != nil {
			return nil, err
		}
	}
	return clusterPatch(c.Object.Raw, before, c.now)
}

// mutateNew completes a cluster that is being created.
func (s *Server) mutateNew(mc *clusterv1.ManagedCluster, user authenticationv1.UserInfo) {
	now := metav1.NewTime(s.o.Clock.Now())
	for i := range mc.Spec.Taints {
		mc.Spec.Taints[i].TimeAdded = &now
	}
	if !slices.ContainsFunc(mc.Spec.Taints, func(t clusterv1.Taint) bool { return t.Key == clusterv1.TaintUnreachable }) {
		mc.Spec.Taints = append(mc.Spec.Taints, clusterv1.Taint{
			Key: clusterv1.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: &now,
		})
	}
	features := s.o.Features()
	if features.DefaultClusterSet && mc.Labels[clusterv1.LabelClusterSet] == "" {
		metav1.SetMetaDataLabel(&mc.ObjectMeta, clusterv1.LabelClusterSet, clusterv1beta2.DefaultClusterSet)
	}
	if features.ResourceCleanup {
		addFinalizer(mc, clusterv1.FinalizerResourceCleanup)
	}
	metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationCreator, user.Username)
	delete(mc.Annotations, clusterv1.AnnotationAdoptedNamespace)
	if !s.isHub(user) {
		// A cluster restored from a backup has no certificate yet.
		delete(mc.Annotations, clusterv1.AnnotationAgentName)
		delete(mc.Annotations, clusterv1.AnnotationCertificateExpires)
		delete(mc.Annotations, clusterv1.AnnotationJoinedBy)
	}
}

// mutateChanged completes a cluster that is being updated.
func (s *Server) mutateChanged(ctx context.Context, c clusterChange) error {
	if err := s.timeTaints(c); err != nil {
		return err
	}
	// What only the hub writes survives a replacement that lacks it.
	for _, key := range []string{clusterv1.AnnotationCreator, clusterv1.AnnotationAdoptedNamespace} {
		if value, had := c.old.Annotations[key]; had && c.now.Annotations[key] == "" {
			metav1.SetMetaDataAnnotation(&c.now.ObjectMeta, key, value)
		}
	}
	s.keepHolder(c)
	return s.defaultSet(ctx, c)
}

// keepHolder keeps the annotation with the name of the agent that holds the latest
// certificate, which only the hub records. Otherwise, when a user applies an older copy of
// the cluster, it would name an older agent, and renewals of the current one would wait for
// approval as those of an unknown agent. The annotation may be removed. Validation refuses
// changes by agents.
func (s *Server) keepHolder(c clusterChange) {
	const key = clusterv1.AnnotationAgentName
	now, before := c.now.Annotations[key], c.old.Annotations[key]
	_, agent := identity.Clusters(c.UserInfo.Groups)
	switch {
	case now == "" || agent || s.isHub(c.UserInfo):
	case before == "":
		delete(c.now.Annotations, key)
	default:
		c.now.Annotations[key] = before
	}
}

// isHub reports whether the user is the hub itself.
func (s *Server) isHub(user authenticationv1.UserInfo) bool {
	return slices.Contains(s.o.Self, user.Username)
}

// defaultSet adds a cluster without a set to the set default. It leaves a cluster alone that
// is being deleted, or whose set label the update does not change while its author may not
// join the set: the update must not fail because of that.
func (s *Server) defaultSet(ctx context.Context, c clusterChange) error {
	if !s.o.Features().DefaultClusterSet || c.now.Labels[clusterv1.LabelClusterSet] != "" || c.now.DeletionTimestamp != nil {
		return nil
	}
	if c.old.Labels[clusterv1.LabelClusterSet] == "" {
		if _, agent := identity.Clusters(c.UserInfo.Groups); agent {
			return nil
		}
		may, err := s.o.Hub.Allowed(ctx, c.UserInfo, setRight(clusterv1beta2.DefaultClusterSet, clusterv1.SubresourceJoin))
		if err != nil || !may {
			return err
		}
	}
	metav1.SetMetaDataLabel(&c.now.ObjectMeta, clusterv1.LabelClusterSet, clusterv1beta2.DefaultClusterSet)
	return nil
}

// timeTaints sets the time of taints that are new or changed.
func (s *Server) timeTaints(c clusterChange) error {
	now := metav1.NewTime(s.o.Clock.Now())
	// Several taints may have the same key: each is compared with the one that equals it in
	// all else.
	type like struct {
		key, value string
		effect     clusterv1.TaintEffect
	}
	stored := map[like]clusterv1.Taint{}
	for _, t := range c.old.Spec.Taints {
		stored[like{t.Key, t.Value, t.Effect}] = t
	}
	var wrong []string
	for i := range c.now.Spec.Taints {
		t := &c.now.Spec.Taints[i]
		have, known := stored[like{t.Key, t.Value, t.Effect}]
		switch {
		case known && !sameTime(t.TimeAdded, have.TimeAdded), !known && t.TimeAdded != nil:
			wrong = append(wrong, t.Key)
		case !known:
			t.TimeAdded = &now
		}
	}
	if len(wrong) > 0 {
		return badRequest("spec.taints: timeAdded of %s is set by the hub; do not change it, and leave it out of new or changed taints",
			strings.Join(wrong, ", "))
	}
	return nil
}

// sameTime also takes a zero time for an absent one.
func sameTime(a, b *metav1.Time) bool { return a.Equal(b) || a.IsZero() && b.IsZero() }

// mutateAccepted prepares a cluster that this request accepts: it adds the finalizer of its
// RBAC objects, and records whether the cluster may take over an existing namespace.
func (s *Server) mutateAccepted(ctx context.Context, mc *clusterv1.ManagedCluster, user authenticationv1.UserInfo) error {
	addFinalizer(mc, clusterv1.FinalizerAPIResourceCleanup)
	delete(mc.Annotations, clusterv1.AnnotationAdoptedNamespace)
	if identity.CheckName(mc.Name) != nil {
		return nil //nolint:nilerr // validation refuses it
	}
	ns, err := s.o.Hub.Namespace(ctx, mc.Name)
	if err != nil || ns == nil || ns.Labels[clusterv1.LabelClusterName] == mc.Name {
		return err
	}
	// The right needed to hand an existing namespace to a cluster.
	may, err := s.o.Hub.Allowed(ctx, user, authorizationv1.ResourceAttributes{Resource: "namespaces", Verb: "update", Name: mc.Name})
	if err != nil || !may {
		return err
	}
	metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationAdoptedNamespace, string(ns.UID))
	return nil
}

func addFinalizer(o metav1.Object, f string) {
	if o.GetDeletionTimestamp() == nil && !slices.Contains(o.GetFinalizers(), f) {
		o.SetFinalizers(append(o.GetFinalizers(), f))
	}
}

// clusterPatch returns the difference between before and after in the parts that mutation may
// change.
func clusterPatch(raw []byte, before, after *clusterv1.ManagedCluster) (out []operation, err error) {
	var shape struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return nil, badRequest("the object cannot be decoded: %s", err)
	}
	missing := len(shape.Spec) == 0 || string(shape.Spec) == "null"
	for _, part := range []struct {
		path    string
		was, is any
	}{
		{"/metadata/labels", before.Labels, after.Labels},
		{"/metadata/annotations", before.Annotations, after.Annotations},
		{"/metadata/finalizers", before.Finalizers, after.Finalizers},
		{"/spec/taints", before.Spec.Taints, after.Spec.Taints},
		{"/spec/leaseDurationSeconds", before.Spec.LeaseDurationSeconds, after.Spec.LeaseDurationSeconds},
	} {
		if equality.Semantic.DeepEqual(part.was, part.is) {
			continue
		}
		if missing && strings.HasPrefix(part.path, "/spec/") {
			missing = false
			out = append(out, operation{"add", "/spec", map[string]any{}})
		}
		out = append(out, operation{"add", part.path, part.is})
	}
	return out, nil
}
