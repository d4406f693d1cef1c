// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Found is what the cache shows of an object that this loop writes.
type Found struct {
	// Exists is false when the object is not there.
	Exists bool
	// UID and Version are those of the object.
	UID     types.UID
	Version string
	// Intent is the hash that the last apply of this project left.
	Intent string
	// Shared is true when somebody else wrote parts of the object, or may have.
	Shared bool
	// Finalizers and Deleting tell how far a deletion is.
	Finalizers []string
	Deleting   bool
}

// Namespace is what the cache shows of the cluster's namespace.
type Namespace struct {
	// Found is the namespace itself.
	Found
	// Owner is its label cluster-name; empty when it has none.
	Owner string
	// Labels are all of its labels.
	Labels map[string]string
}

// State is everything that a decision needs.
type State struct {
	// Cluster is nil when no ManagedCluster has the name any more.
	Cluster *clusterv1.ManagedCluster
	// Name of the cluster.
	Name string
	// Namespace of the cluster, of the same name.
	Namespace Namespace
	// Rights are the RBAC objects that exist.
	Rights Rights[Found]
	// Shared are the two roles that all clusters share, by name.
	Shared map[string]Found
	// Works is how many ManifestWorks the namespace holds.
	Works int
	// AddOns is how many add-ons the namespace of a cluster that goes holds.
	AddOns int
	// Behind is true when the namespace holds works, or add-ons of a cluster that
	// goes, that the caches do not show yet.
	Behind bool
	// Fault is why that cannot be known, nil where it is.
	Fault error
	// Labels are put on every object beside those that say whose it is.
	Labels map[string]string
	// Lease is true when the cluster's lease exists.
	Lease bool
	// Last is true when there is no other ManagedCluster.
	Last bool
	// AutoAccept lists the users whose clusters are accepted without a person.
	AutoAccept []string
	// Now is the time of the decision.
	Now time.Time
}

// Decision is a plan, and what a plan cannot say.
type Decision struct {
	reconcile.Plan
	// CreateLease asks for the cluster's lease, after the plan; a lease that is
	// there already stays as it is.
	CreateLease bool
}

// catchUp is how long caches are given that are behind, unless what they lacked
// comes before.
const catchUp = time.Second

// Decide is pure: it brings one cluster nearer to what its spec says.
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
		return Decision{Plan: remove(s)}
	case s.Cluster.Spec.HubAcceptsClient:
		return admit(s)
	case autoAccepted(s):
		return Decision{Plan: autoAccept(s)}
	default:
		return Decision{Plan: deny(s)}
	}
}

// stays tells whether the cluster is accepted and not being deleted, nor its
// namespace: it keeps all its rights.
func (s State) stays() bool {
	return s.Cluster != nil && s.Cluster.DeletionTimestamp == nil && s.Cluster.Spec.HubAcceptsClient && !s.Namespace.Deleting
}

// keepsRights tells whether a cluster that goes keeps its rights while it has
// add-ons.
func (s State) keepsRights() bool {
	return s.Cluster != nil && s.Cluster.Spec.HubAcceptsClient && slices.Contains(s.Cluster.Finalizers, clusterv1.FinalizerResourceCleanup)
}

// noWorks tells whether no work is left for which the agent needs rights.
func (s State) noWorks() bool { return s.Works == 0 && !s.Behind }

// mayAccept tells whether the cluster's creator may have it accepted without a
// person, and that was not noted yet.
func mayAccept(s State) bool {
	_, done := s.Cluster.Annotations[clusterv1.AnnotationAutomaticallyAcceptedOn]
	creator := s.Cluster.Annotations[clusterv1.AnnotationCreator]
	return !done && creator != "" && slices.Contains(s.AutoAccept, creator) && identity.CheckName(s.Name) == nil
}

// autoAccepted tells whether a cluster that nobody accepted is to be accepted
// now. Once it was, by whomever, a later denial by a person stays.
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

// noteAcceptance notes when the cluster was accepted by its creator's right.
func noteAcceptance(s State, mc *clusterv1.ManagedCluster) {
	metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationAutomaticallyAcceptedOn, s.Now.UTC().Format(time.RFC3339))
}

// admit gives an accepted cluster all that it needs.
func admit(s State) Decision {
	mc := s.Cluster.DeepCopy()
	if mayAccept(s) {
		// A person was faster: a later denial stays all the same.
		noteAcceptance(s, mc)
	}
	if fault := obstacle(s); fault != "" {
		set(mc, s.Now, metav1.Condition{
			Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonError,
			Message: fault,
		})
		plan := reconcile.Plan{Object: mc}
		if s.Namespace.Deleting && s.Rights.Work.Deleting && s.noWorks() {
			// The namespace waits for this binding, and the cluster for the namespace.
			plan.Writes = append(plan.Writes, s.released())
		}
		return Decision{Plan: plan}
	}
	addFinalizer(mc, clusterv1.FinalizerAPIResourceCleanup)
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
	role := clusterRole(clusterv1.RolePrefixManagedCluster+s.Name, labels(s.Name), acceptedRules(s.Name)...)
	plan.Writes = s.appendChanged(plan.Writes, role, s.Rights.Role)
	plan.Writes = s.appendChanged(plan.Writes, clusterBinding(s.Name), s.Rights.Binding)
	plan.Writes = s.appendChanged(plan.Writes, registrationBinding(s.Name), s.Rights.Registration)
	if s.Rights.Work.Deleting {
		// Left from a denial: it has to go before it can be made again.
		plan.Writes = append(plan.Writes, s.released())
	} else {
		plan.Writes = s.appendChanged(plan.Writes, workBinding(s.Name), s.Rights.Work)
	}
	if !is(mc, clusterv1.ConditionHubAccepted, metav1.ConditionTrue) {
		plan.Events = append(plan.Events, reconcile.Event{
			Type: corev1.EventTypeNormal, Reason: "ManagedClusterAccepted", Namespace: s.Name,
			Message: fmt.Sprintf("Cluster %s is accepted; its agent works in namespace %s", s.Name, s.Name),
		})
	}
	set(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonHubClusterAdminAccepted,
		Message: "The cluster is accepted by an administrator of the hub",
	})
	if apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionClockSynced) == nil && !s.Lease {
		set(mc, s.Now, metav1.Condition{
			Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonManagedClusterClockSynced,
			Message: "The clocks of hub and cluster agree",
		})
	}
	return Decision{Plan: plan, CreateLease: !s.Lease}
}

// obstacle tells why an accepted cluster cannot be given its namespace.
func obstacle(s State) string {
	if err := identity.CheckName(s.Name); err != nil {
		return err.Error()
	}
	ns := s.Namespace
	switch {
	case !ns.Exists:
		return ""
	case ns.Deleting:
		return fmt.Sprintf("namespace %s is being deleted; the cluster gets it when that has ended", s.Name)
	case ns.Owner == s.Name:
		return ""
	case s.Cluster.Annotations[clusterv1.AnnotationAdoptedNamespace] == string(ns.UID):
		return ""
	default:
		return fmt.Sprintf("namespace %s was there before and belongs to somebody else; "+
			"deny the cluster and let somebody accept it who may update that namespace, or join under another name", s.Name)
	}
}

// deny takes the rights of a cluster that was accepted once. One that never was
// gets nothing, and loses what a former cluster of its name left.
func deny(s State) reconcile.Plan {
	if apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionHubAccepted) == nil {
		return withdraw(s)
	}
	mc := s.Cluster.DeepCopy()
	plan := reconcile.Plan{Object: mc}
	if identity.CheckName(s.Name) == nil && (s.Rights.Role.Exists || s.Rights.Binding.Exists) {
		role := clusterRole(clusterv1.RolePrefixManagedCluster+s.Name, labels(s.Name), deniedRules(s.Name)...)
		plan.Writes = s.appendChanged(plan.Writes, role, s.Rights.Role)
		plan.Writes = s.appendChanged(plan.Writes, clusterBinding(s.Name), s.Rights.Binding)
	}
	removeBindings(s, &plan)
	if is(mc, clusterv1.ConditionHubAccepted, metav1.ConditionTrue) {
		plan.Events = append(plan.Events, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: "ManagedClusterDenied", Namespace: s.Name,
			Message: fmt.Sprintf("Cluster %s is no longer accepted; its agent has lost %s", s.Name, s.lost()),
		})
	}
	set(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonHubClusterAdminDenied,
		Message: "The cluster is not accepted by an administrator of the hub" + s.remains(),
	})
	if is(mc, clusterv1.ConditionJoined, metav1.ConditionTrue) {
		set(mc, s.Now, metav1.Condition{
			Type: clusterv1.ConditionJoined, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonNotAccepted,
			Message: "The hub does not accept the cluster",
		})
	}
	return plan
}

// lost says what a denied cluster loses at once.
func (s State) lost() string {
	if s.noWorks() {
		return "its rights, but to read its own ManagedCluster"
	}
	return "its rights, but to read its own ManagedCluster, and to read and finish the works that it has: delete those to end that. It gets no new ones"
}

// remains says what a denied cluster may still do.
func (s State) remains() string {
	if s.noWorks() {
		return ""
	}
	return "; its agent may read and finish the works that it has until they are deleted, and gets no new ones"
}

// remove takes everything that this loop made for a cluster that is being
// deleted, and lets the cluster go when nothing is left. While its add-ons are
// being removed an accepted cluster keeps its rights: what they do at their end
// needs an agent that sees them and reports. One that must lose its rights at
// once is denied.
func remove(s State) reconcile.Plan {
	if (s.AddOns > 0 || s.Behind) && s.keepsRights() {
		return reconcile.Plan{}
	}
	plan := withdraw(s)
	mc := s.Cluster.DeepCopy()
	plan.Object = mc
	r := s.Rights
	if !r.Role.Exists && !r.Binding.Exists && !r.Registration.Exists && !r.Work.Exists && s.noWorks() {
		dropFinalizer(mc, clusterv1.FinalizerAPIResourceCleanup)
	}
	return plan
}

// withdraw removes the RBAC objects of the cluster, and those that all share
// with the last cluster. The binding for works stays until no work is left.
func withdraw(s State) reconcile.Plan {
	var plan reconcile.Plan
	name := clusterv1.RolePrefixManagedCluster + s.Name
	// A cluster of a reserved name never had a role; the shared ones have such
	// names.
	if identity.CheckName(s.Name) == nil {
		plan.Writes = appendFound(plan.Writes, clusterRoleBindings, "", name, s.Rights.Binding)
		plan.Writes = appendFound(plan.Writes, clusterRoles, "", name, s.Rights.Role)
	}
	removeBindings(s, &plan)
	if s.Last && (s.Cluster == nil || s.Cluster.DeletionTimestamp != nil) && s.noWorks() && !s.Rights.Work.Exists {
		for _, role := range []string{clusterv1.RoleRegistration, clusterv1.RoleWork} {
			plan.Writes = appendFound(plan.Writes, clusterRoles, "", role, s.Shared[role])
		}
	}
	return plan
}

// removeBindings removes the two RoleBindings: the one for works is deleted at
// once too, but its finalizer keeps it until the last work is gone.
func removeBindings(s State, plan *reconcile.Plan) {
	name := clusterv1.RolePrefixManagedCluster + s.Name
	plan.Writes = appendFound(plan.Writes, roleBindings, s.Name, name+clusterv1.RoleBindingSuffixRegistration, s.Rights.Registration)
	work := s.Rights.Work
	if !work.Exists {
		return
	}
	if s.noWorks() && slices.Contains(work.Finalizers, clusterv1.FinalizerManifestWorkCleanup) {
		plan.Writes = append(plan.Writes, s.released())
	}
	plan.Writes = appendFound(plan.Writes, roleBindings, s.Name, name+clusterv1.RoleBindingSuffixWork, work)
}

// released is the binding for works without its finalizer. The UID keeps one
// that went meanwhile from being made again.
func (s State) released() reconcile.Apply {
	binding := workBinding(s.Name)
	binding.Finalizers = nil
	binding.UID = s.Rights.Work.UID
	s.dress(binding)
	return reconcile.Apply{Object: binding, LiveVersion: s.Rights.Work.Version}
}

// dress adds the labels that all objects get; those that say whose an object is
// stay as they are.
func (s State) dress(o reconcile.Object) {
	labels := maps.Clone(s.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, o.GetLabels())
	o.SetLabels(labels)
}

// appendNamespace adds the apply of the namespace unless it is the cluster's and
// has all of its labels. Others may write to it too.
func (s State) appendNamespace(list []reconcile.Write) []reconcile.Write {
	ns := namespace(s.Name)
	s.dress(ns)
	intent := manager.Stamp(ns)
	same := s.Namespace.Exists && s.Namespace.Intent == intent
	for key, value := range ns.Labels {
		same = same && s.Namespace.Labels[key] == value
	}
	if same {
		return list
	}
	// The UID keeps one that went meanwhile from being made again.
	ns.UID = s.Namespace.UID
	return append(list, reconcile.Apply{Object: ns})
}

// appendChanged adds the apply of o unless what is found is exactly that.
func (s State) appendChanged(list []reconcile.Write, o reconcile.Object, found Found) []reconcile.Write {
	s.dress(o)
	intent := manager.Stamp(o)
	if found.Exists && !found.Deleting && !found.Shared && found.Intent == intent {
		return list
	}
	return append(list, reconcile.Apply{Object: o, LiveVersion: found.Version})
}

func appendFound(list []reconcile.Write, r schema.GroupVersionResource, namespace, name string, found Found) []reconcile.Write {
	if !found.Exists || found.Deleting {
		return list
	}
	return append(list, reconcile.Remove{Target: reconcile.Target{Resource: r, Namespace: namespace, Name: name, UID: found.UID}})
}

func namespace(cluster string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: labels(cluster)},
	}
}

// set changes a condition that does not say so already; a new generation alone
// is not worth a write.
func set(mc *clusterv1.ManagedCluster, now time.Time, c metav1.Condition) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return
	}
	c.ObservedGeneration = mc.Generation
	reconcile.SetCondition(&mc.Status.Conditions, c, now)
}

func is(mc *clusterv1.ManagedCluster, kind string, status metav1.ConditionStatus) bool {
	return apimeta.IsStatusConditionPresentAndEqual(mc.Status.Conditions, kind, status)
}

func addFinalizer(o metav1.Object, f string) {
	if !slices.Contains(o.GetFinalizers(), f) {
		o.SetFinalizers(append(o.GetFinalizers(), f))
	}
}

func dropFinalizer(o metav1.Object, f string) {
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(have string) bool { return have == f }))
}
