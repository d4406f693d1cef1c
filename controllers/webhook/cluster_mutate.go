// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// mutateCluster fills in the parts of a ManagedCluster that the hub decides, and what its
// loops would otherwise have to write in separate requests: finalizers and the first taint.
func (s *Server) mutateCluster(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	mc, old, err := objects[clusterv1.ManagedCluster](r)
	if err != nil {
		return nil, err
	}
	before := mc.DeepCopy()
	if old == nil {
		s.mutateNew(mc, r.UserInfo)
	} else if err := s.mutateChanged(ctx, mc, old, r.UserInfo); err != nil {
		return nil, err
	}
	// The API server fills in an absent duration; an explicit 0 means the same. A stored 0 is
	// left alone: the update may only change other fields.
	if mc.Spec.LeaseDurationSeconds == 0 && (old == nil || old.Spec.LeaseDurationSeconds != 0) {
		mc.Spec.LeaseDurationSeconds = clusterv1.DefaultLeaseDurationSeconds
	}
	if accepts(mc, old) {
		if err := s.mutateAccepted(ctx, mc, r.UserInfo); err != nil {
			return nil, err
		}
	}
	return clusterPatch(r.Object.Raw, before, mc)
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
func (s *Server) mutateChanged(ctx context.Context, mc, old *clusterv1.ManagedCluster, user authenticationv1.UserInfo) error {
	if err := s.timeTaints(mc, old); err != nil {
		return err
	}
	// What only the hub writes survives a replacement that lacks it.
	for _, key := range ownAnnotations {
		if value, had := old.Annotations[key]; had && mc.Annotations[key] == "" {
			metav1.SetMetaDataAnnotation(&mc.ObjectMeta, key, value)
		}
	}
	s.keepHolder(mc, old, user)
	return s.defaultSet(ctx, mc, old, user)
}

// keepHolder keeps the annotation with the name of the agent that holds the latest
// certificate, which only the hub records. Otherwise, when a user applies an older copy of
// the cluster, it would name an older agent, and renewals of the current one would wait for
// approval as those of an unknown agent. The annotation may be removed. Validation refuses
// changes by agents.
func (s *Server) keepHolder(mc, old *clusterv1.ManagedCluster, user authenticationv1.UserInfo) {
	now, before := mc.Annotations[clusterv1.AnnotationAgentName], old.Annotations[clusterv1.AnnotationAgentName]
	if now == "" || now == before || s.isHub(user) {
		return
	}
	if _, agent := identity.Clusters(user.Groups); agent {
		return
	}
	if before == "" {
		delete(mc.Annotations, clusterv1.AnnotationAgentName)
		return
	}
	mc.Annotations[clusterv1.AnnotationAgentName] = before
}

// isHub reports whether the user is the hub itself.
func (s *Server) isHub(user authenticationv1.UserInfo) bool { return user.Username == s.o.Self }

// ownAnnotations lists the annotations that only this server sets.
var ownAnnotations = []string{clusterv1.AnnotationCreator, clusterv1.AnnotationAdoptedNamespace}

// defaultSet adds a cluster without a set to the set default. It leaves a cluster alone that
// is being deleted, or whose set label the update does not change while its author may not
// join the set: the update must not fail because of that.
func (s *Server) defaultSet(ctx context.Context, mc, old *clusterv1.ManagedCluster, user authenticationv1.UserInfo) error {
	if !s.o.Features().DefaultClusterSet || mc.Labels[clusterv1.LabelClusterSet] != "" || mc.DeletionTimestamp != nil {
		return nil
	}
	if old.Labels[clusterv1.LabelClusterSet] == "" {
		if _, agent := identity.Clusters(user.Groups); agent {
			return nil
		}
		may, err := s.o.Hub.Allowed(ctx, user, setRight(clusterv1beta2.DefaultClusterSet, clusterv1.SubresourceJoin))
		if err != nil || !may {
			return err
		}
	}
	metav1.SetMetaDataLabel(&mc.ObjectMeta, clusterv1.LabelClusterSet, clusterv1beta2.DefaultClusterSet)
	return nil
}

// timeTaints sets the time of taints that are new or changed.
func (s *Server) timeTaints(mc, old *clusterv1.ManagedCluster) error {
	now := metav1.NewTime(s.o.Clock.Now())
	// Several taints may have the same key: each is compared with the one that equals it in
	// all else.
	type like struct {
		key, value string
		effect     clusterv1.TaintEffect
	}
	stored := map[like]clusterv1.Taint{}
	for _, t := range old.Spec.Taints {
		stored[like{t.Key, t.Value, t.Effect}] = t
	}
	var wrong []string
	for i := range mc.Spec.Taints {
		t := &mc.Spec.Taints[i]
		have, known := stored[like{t.Key, t.Value, t.Effect}]
		switch {
		case known:
			if !sameTime(t.TimeAdded, have.TimeAdded) {
				wrong = append(wrong, t.Key)
			}
		case t.TimeAdded != nil:
			wrong = append(wrong, t.Key)
		default:
			t.TimeAdded = &now
		}
	}
	if len(wrong) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"spec.taints: timeAdded of %s is set by the hub; do not change it, and leave it out of new or changed taints",
			strings.Join(wrong, ", "),
		))
	}
	return nil
}

func sameTime(a, b *metav1.Time) bool {
	if a == nil || b == nil || a.IsZero() || b.IsZero() {
		return (a == nil || a.IsZero()) == (b == nil || b.IsZero())
	}
	return a.Equal(b)
}

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
	may, err := s.o.Hub.Allowed(ctx, user, namespaceRight(mc.Name))
	if err != nil || !may {
		return err
	}
	metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationAdoptedNamespace, string(ns.UID))
	return nil
}

// namespaceRight is the right needed to hand an existing namespace to a cluster.
func namespaceRight(name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Resource: "namespaces", Verb: "update", Name: name}
}

func addFinalizer(o metav1.Object, f string) {
	if o.GetDeletionTimestamp() == nil && !slices.Contains(o.GetFinalizers(), f) {
		o.SetFinalizers(append(o.GetFinalizers(), f))
	}
}

// clusterPatch returns the difference between before and after in the parts that mutation may
// change.
func clusterPatch(raw []byte, before, after *clusterv1.ManagedCluster) ([]operation, error) {
	var out []operation
	if !maps.Equal(before.Labels, after.Labels) {
		out = append(out, operation{"add", "/metadata/labels", after.Labels})
	}
	if !maps.Equal(before.Annotations, after.Annotations) {
		out = append(out, operation{"add", "/metadata/annotations", after.Annotations})
	}
	if !slices.Equal(before.Finalizers, after.Finalizers) {
		out = append(out, operation{"add", "/metadata/finalizers", after.Finalizers})
	}
	spec, err := specPatch(raw, before, after)
	return append(out, spec...), err
}

// specPatch creates the spec if it is missing, and returns the changes to it.
func specPatch(raw []byte, before, after *clusterv1.ManagedCluster) (out []operation, err error) {
	if !reflect.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
		out = append(out, operation{"add", "/spec/taints", after.Spec.Taints})
	}
	if before.Spec.LeaseDurationSeconds != after.Spec.LeaseDurationSeconds {
		out = append(out, operation{"add", "/spec/leaseDurationSeconds", after.Spec.LeaseDurationSeconds})
	}
	if len(out) == 0 {
		return nil, nil
	}
	var shape struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return nil, apierrors.NewBadRequest("the object cannot be decoded: " + err.Error())
	}
	if len(shape.Spec) == 0 || string(shape.Spec) == "null" {
		out = append([]operation{{"add", "/spec", map[string]any{}}}, out...)
	}
	return out, nil
}
