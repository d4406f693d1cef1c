// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Found is what the cache shows of an object this loop writes.
type Found struct {
	// Exists is false when the object is not there.
	Exists bool
	// UID and Version are those of the object.
	UID     types.UID
	Version string
	// Labels are its labels.
	Labels map[string]string
	// Intent is the hash left by this project's last apply.
	Intent string
	// Shared is true when another writer has changed parts of the object, or may have.
	Shared bool
	// Finalizers and Deleting show how far a deletion has progressed.
	Finalizers []string
	Deleting   bool
}

// State holds everything a decision needs.
type State struct {
	// Cluster is nil when no ManagedCluster has the name.
	Cluster *clusterv1.ManagedCluster
	// Name of the cluster.
	Name string
	// Namespace is the cluster's namespace, which has the cluster's name. Its label
	// cluster-name names its owner.
	Namespace Found
	// Rights are the RBAC objects found.
	Rights Rights
	// Shared are the two roles shared by all clusters, by name.
	Shared map[string]Found
	// Works is how many ManifestWorks the namespace holds.
	Works int
	// AddOns is how many add-ons are in the namespace of a cluster being deleted.
	AddOns int
	// Behind is true when the namespace holds works, or add-ons of a cluster being deleted,
	// that the caches do not show yet.
	Behind bool
	// Fault is why Behind could not be determined; nil otherwise.
	Fault error
	// Labels are put on every object in addition to the labels that identify its owner.
	Labels map[string]string
	// Lease is true when the cluster's lease exists.
	Lease bool
	// Last is true when no other ManagedCluster exists.
	Last bool
	// AutoAccept lists the users whose clusters are accepted automatically.
	AutoAccept []string
	// Now is the time of the decision.
	Now time.Time
}

// Decision is a plan, plus what a plan cannot express.
type Decision struct {
	reconcile.Plan
	// CreateLease requests the cluster's lease, to be created after the plan; an existing
	// lease is left alone.
	CreateLease bool
}

// catchUp is how long to wait for caches that are behind, unless an event arrives first.
const catchUp = time.Second

// Decide is pure: it returns what moves one cluster closer to its spec.
func Decide(s State) Decision {
	d := decide(s)
	if s.Behind {
		d.RequeueAfter = catchUp
	}
	return d
}

func decide(s State) Decision {
	switch {
	case s.Cluster == nil:
		return Decision{Plan: withdraw(s)}
	case s.Cluster.DeletionTimestamp != nil:
		return Decision{Plan: removeAll(s)}
	case s.Cluster.Spec.HubAcceptsClient:
		return admit(s)
	case autoAccepted(s):
		return Decision{Plan: autoAccept(s)}
	default:
		return Decision{Plan: deny(s)}
	}
}

// keepsAllRights reports whether the cluster keeps all its rights: it is accepted, and neither it nor
// its namespace is being deleted.
func (s State) keepsAllRights() bool {
	return s.Cluster != nil && s.Cluster.DeletionTimestamp == nil && s.Cluster.Spec.HubAcceptsClient && !s.Namespace.Deleting
}

// keepsRights reports whether a cluster being deleted keeps its rights while it has add-ons.
func (s State) keepsRights() bool {
	return s.Cluster != nil && s.Cluster.Spec.HubAcceptsClient && slices.Contains(s.Cluster.Finalizers, clusterv1.FinalizerResourceCleanup)
}

// hasNoWorks reports whether no work is left for which the agent needs rights.
func (s State) hasNoWorks() bool { return s.Works == 0 && !s.Behind }

// mayAccept reports whether the cluster's creator is allowed automatic acceptance that has
// not been recorded yet.
func mayAccept(s State) bool {
	_, done := s.Cluster.Annotations[clusterv1.AnnotationAutomaticallyAcceptedOn]
	creator := s.Cluster.Annotations[clusterv1.AnnotationCreator]
	return !done && creator != "" && slices.Contains(s.AutoAccept, creator) && identity.CheckName(s.Name) == nil
}

// autoAccepted reports whether to accept a cluster automatically now. Once a cluster has been
// accepted, by anyone, a later denial by a user is kept.
func autoAccepted(s State) bool {
	denied := apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionHubAccepted)
	return mayAccept(s) && (denied == nil || denied.Reason != clusterv1.ReasonHubClusterAdminDenied)
}

func autoAccept(s State) reconcile.Plan {
	mc := s.Cluster.DeepCopy()
	mc.Spec.HubAcceptsClient = true
	noteAcceptance(s, mc)
	return reconcile.Plan{Object: mc}
}

// noteAcceptance records when the cluster was accepted automatically.
func noteAcceptance(s State, mc *clusterv1.ManagedCluster) {
	metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationAutomaticallyAcceptedOn, s.Now.UTC().Format(time.RFC3339))
}

// admit gives an accepted cluster everything it needs.
func admit(s State) Decision {
	mc := s.Cluster.DeepCopy()
	if mayAccept(s) {
		// A user accepted it first; record it anyway, so that a later denial is kept.
		noteAcceptance(s, mc)
	}
	if fault := obstacle(s); fault != "" {
		hub.SetCondition(mc, s.Now, metav1.Condition{
			Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonError,
			Message: fault,
		})
		plan := reconcile.Plan{Object: mc}
		if s.Namespace.Deleting && s.Rights.Work.Deleting && s.hasNoWorks() {
			// The namespace waits for this binding, and the cluster waits for the namespace.
			plan.Writes = append(plan.Writes, s.releasedBinding())
		}
		return Decision{Plan: plan}
	}
	if !slices.Contains(mc.Finalizers, clusterv1.FinalizerAPIResourceCleanup) {
		mc.Finalizers = append(mc.Finalizers, clusterv1.FinalizerAPIResourceCleanup)
	}
	plan := reconcile.Plan{
		Object: mc,
		OnFailure: &metav1.Condition{
			Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonError,
			Message: "The rights of the agent are not complete:",
		},
	}
	plan.Writes = s.appendNamespace(plan.Writes)
	for _, role := range sharedRoles() {
		plan.Writes = s.appendChanged(plan.Writes, role, s.Shared[role.Name])
	}
	role := clusterRole(clusterv1.RolePrefixManagedCluster+s.Name, s.Name, acceptedRules(s.Name)...)
	plan.Writes = s.appendChanged(plan.Writes, role, s.Rights.Role)
	plan.Writes = s.appendChanged(plan.Writes, clusterBinding(s.Name), s.Rights.Binding)
	plan.Writes = s.appendChanged(plan.Writes, registrationBinding(s.Name), s.Rights.Registration)
	if s.Rights.Work.Deleting {
		// Left over from a denial: it must be gone before it can be created again.
		plan.Writes = append(plan.Writes, s.releasedBinding())
	} else {
		plan.Writes = s.appendChanged(plan.Writes, workBinding(s.Name), s.Rights.Work)
	}
	if !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionHubAccepted) {
		plan.Events = append(plan.Events, reconcile.Event{
			Type: corev1.EventTypeNormal, Reason: "ManagedClusterAccepted", Namespace: s.Name,
			Message: fmt.Sprintf("Cluster %s is accepted; its agent works in namespace %s", s.Name, s.Name),
		})
	}
	hub.SetCondition(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonHubClusterAdminAccepted,
		Message: "The cluster is accepted by an administrator of the hub",
	})
	if apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionClockSynced) == nil && !s.Lease {
		hub.SetCondition(mc, s.Now, metav1.Condition{
			Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonManagedClusterClockSynced,
			Message: "The clocks of hub and cluster agree",
		})
	}
	return Decision{Plan: plan, CreateLease: !s.Lease}
}

// obstacle returns why an accepted cluster cannot get its namespace; empty when it can.
func obstacle(s State) string {
	if err := identity.CheckName(s.Name); err != nil {
		return err.Error()
	}
	ns := s.Namespace
	switch {
	case ns.Deleting:
		return fmt.Sprintf("namespace %s is being deleted; the cluster gets it once it is gone", s.Name)
	case !ns.Exists, ns.Labels[clusterv1.LabelClusterName] == s.Name, s.Cluster.Annotations[clusterv1.AnnotationAdoptedNamespace] == string(ns.UID):
		return ""
	default:
		return fmt.Sprintf("namespace %s already exists and belongs to someone else; "+
			"deny the cluster and have a user who may update that namespace accept it, or join under another name", s.Name)
	}
}

// deny removes the rights of a cluster that was once accepted. A cluster that never was gets
// nothing, and loses what a former cluster of the same name left behind.
func deny(s State) reconcile.Plan {
	if apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionHubAccepted) == nil {
		return withdraw(s)
	}
	mc := s.Cluster.DeepCopy()
	plan := reconcile.Plan{Object: mc}
	if identity.CheckName(s.Name) == nil && (s.Rights.Role.Exists || s.Rights.Binding.Exists) {
		role := clusterRole(clusterv1.RolePrefixManagedCluster+s.Name, s.Name, deniedRules(s.Name)...)
		plan.Writes = s.appendChanged(plan.Writes, role, s.Rights.Role)
		plan.Writes = s.appendChanged(plan.Writes, clusterBinding(s.Name), s.Rights.Binding)
	}
	removeBindings(s, &plan)
	if apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionHubAccepted) {
		plan.Events = append(plan.Events, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: "ManagedClusterDenied", Namespace: s.Name,
			Message: fmt.Sprintf("Cluster %s is no longer accepted; its agent has lost %s", s.Name, s.lostRights()),
		})
	}
	hub.SetCondition(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonHubClusterAdminDenied,
		Message: "The cluster is not accepted by an administrator of the hub" + s.remainingRights(),
	})
	if apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) {
		hub.SetCondition(mc, s.Now, metav1.Condition{
			Type: clusterv1.ConditionJoined, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonNotAccepted,
			Message: "The hub does not accept the cluster",
		})
	}
	return plan
}

// lostRights describes what a denied cluster loses at once.
func (s State) lostRights() string {
	if s.hasNoWorks() {
		return "all rights except to read its own ManagedCluster"
	}
	return "all rights except to read its own ManagedCluster and to read and finish its existing works, until they are deleted; it gets no new ones"
}

// remainingRights describes what a denied cluster may still do.
func (s State) remainingRights() string {
	if s.hasNoWorks() {
		return ""
	}
	return "; its agent may read and finish its existing works until they are deleted, and gets no new ones"
}

// removeAll removes everything this loop created for a cluster being deleted, and drops its
// finalizer when nothing is left. An accepted cluster keeps its rights while its add-ons are
// being removed: their cleanup needs an agent that sees them and reports. To take a cluster's
// rights away at once, deny it.
func removeAll(s State) reconcile.Plan {
	if (s.AddOns > 0 || s.Behind) && s.keepsRights() {
		return reconcile.Plan{}
	}
	plan := withdraw(s)
	mc := s.Cluster.DeepCopy()
	plan.Object = mc
	r := s.Rights
	if !r.Role.Exists && !r.Binding.Exists && !r.Registration.Exists && !r.Work.Exists && s.hasNoWorks() {
		mc.Finalizers = slices.DeleteFunc(mc.Finalizers, func(f string) bool { return f == clusterv1.FinalizerAPIResourceCleanup })
	}
	return plan
}

// withdraw removes the RBAC objects of the cluster and, with the last cluster, the shared
// ones. The binding for works stays until no work is left.
func withdraw(s State) reconcile.Plan {
	var plan reconcile.Plan
	name := clusterv1.RolePrefixManagedCluster + s.Name
	// A cluster with a reserved name never had a role; the shared roles have such names.
	if identity.CheckName(s.Name) == nil {
		plan.Writes = appendFound(plan.Writes, ClusterRoleBindingKind, "", name, s.Rights.Binding)
		plan.Writes = appendFound(plan.Writes, ClusterRoleKind, "", name, s.Rights.Role)
	}
	removeBindings(s, &plan)
	if s.Last && (s.Cluster == nil || s.Cluster.DeletionTimestamp != nil) && s.hasNoWorks() && !s.Rights.Work.Exists {
		for _, role := range []string{clusterv1.RoleRegistration, clusterv1.RoleWork} {
			plan.Writes = appendFound(plan.Writes, ClusterRoleKind, "", role, s.Shared[role])
		}
	}
	return plan
}

// removeBindings removes the two RoleBindings. The one for works is deleted at once too, but
// its finalizer keeps it until the last work is gone.
func removeBindings(s State, plan *reconcile.Plan) {
	name := clusterv1.RolePrefixManagedCluster + s.Name
	plan.Writes = appendFound(plan.Writes, RoleBindingKind, s.Name, name+clusterv1.RoleBindingSuffixRegistration, s.Rights.Registration)
	work := s.Rights.Work
	if !work.Exists {
		return
	}
	if s.hasNoWorks() && slices.Contains(work.Finalizers, clusterv1.FinalizerManifestWorkCleanup) {
		plan.Writes = append(plan.Writes, s.releasedBinding())
	}
	plan.Writes = appendFound(plan.Writes, RoleBindingKind, s.Name, name+clusterv1.RoleBindingSuffixWork, work)
}

// releasedBinding is the binding for works without its finalizer. The UID keeps a binding that has
// been deleted in the meantime from being created again.
func (s State) releasedBinding() reconcile.Apply {
	binding := workBinding(s.Name)
	binding.Finalizers = nil
	binding.UID = s.Rights.Work.UID
	s.addLabels(binding)
	return reconcile.Apply{Object: binding, LiveVersion: s.Rights.Work.Version}
}

// addLabels adds the labels that all objects get; labels that identify an object's owner are not
// overwritten.
func (s State) addLabels(o reconcile.Object) {
	o.SetLabels(kubelabels.Merge(s.Labels, o.GetLabels()))
}

// appendNamespace adds the apply of the namespace unless it belongs to the cluster and has
// all its labels. Others may write to it too.
func (s State) appendNamespace(list []reconcile.Write) []reconcile.Write {
	ns := namespace(s.Name)
	s.addLabels(ns)
	intent := manager.Stamp(ns)
	same := s.Namespace.Exists && s.Namespace.Intent == intent
	for key, value := range ns.Labels {
		same = same && s.Namespace.Labels[key] == value
	}
	if same {
		return list
	}
	// The UID keeps a namespace that has been deleted in the meantime from being created
	// again.
	ns.UID = s.Namespace.UID
	return append(list, reconcile.Apply{Object: ns})
}

// appendChanged adds the apply of o unless the object found already matches it.
func (s State) appendChanged(list []reconcile.Write, o reconcile.Object, found Found) []reconcile.Write {
	s.addLabels(o)
	intent := manager.Stamp(o)
	if found.Exists && !found.Deleting && !found.Shared && found.Intent == intent {
		return list
	}
	return append(list, reconcile.Apply{Object: o, LiveVersion: found.Version})
}

func appendFound(list []reconcile.Write, kind schema.GroupVersionKind, namespace, name string, found Found) []reconcile.Write {
	if !found.Exists || found.Deleting {
		return list
	}
	return append(list, reconcile.Remove{Target: reconcile.Target{Resource: reconcile.ResourceOf(kind), Namespace: namespace, Name: name, UID: found.UID}})
}

func namespace(cluster string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: labels(cluster)},
	}
}
