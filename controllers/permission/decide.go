// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/permission/grant"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// patience is how long a work that was put right is left alone when somebody else changes it
// again, so that two controllers do not write it in turn as fast as they can.
const patience = time.Minute

// recheck is how often a loop looks at what it does not watch: an object of somebody else that
// has the name of a work.
const recheck = time.Minute

// reasonChanged is the reason of the Event about a work that somebody else has changed.
const reasonChanged = "ManifestWorkChanged"

// State is the input of a decision.
type State struct {
	// Permission is the object.
	Permission *permissionv1alpha1.ClusterPermission
	// Cluster is true when there is a ManagedCluster with the name of the namespace; Leaving
	// while it is being deleted.
	Cluster, Leaving bool
	// Facts are what the objects depend on besides the spec. Undecided is true while the
	// ManagedServiceAccounts have not been listed.
	Facts     grant.Facts
	Undecided bool
	// Works are the ManifestWorks that the object controls, the oldest first.
	Works []Work
	// Taken is true when somebody else's ManifestWork has the name.
	Taken bool
	// Last is what was sent last.
	Last Sent
	// Now is the time of the decision.
	Now time.Time
}

// Sent is what was last sent to the API server: the digest of a spec, and the resourceVersion of
// the work before.
type Sent struct {
	Spec digest.Sum
	Base string
	// Repaired is when this spec was sent again because somebody else had changed the work.
	Repaired time.Time
}

// Decision is a plan, and what it sends, if anything.
type Decision struct {
	reconcile.Plan
	Sent Sent
}

// Decide plans the writes for a ClusterPermission. It is pure.
func Decide(s State) Decision {
	if s.Permission.DeletionTimestamp != nil {
		return Decision{} // the garbage collector deletes the work
	}
	cp := s.Permission.DeepCopy()
	d := Decision{Plan: reconcile.Plan{Object: cp}}
	if problem := validate(s, cp); problem != "" {
		d.Events = events(s.Permission, cp)
		return d
	}
	if s.Undecided && grant.UsesAccounts(&cp.Spec) {
		return Decision{} // the first list wakes it
	}
	manifests, err := render(s, cp)
	if err != nil {
		s.setCondition(cp, permissionv1alpha1.ConditionApplied, metav1.ConditionFalse, permissionv1alpha1.ReasonBuildFailed, err.Error()+stays(s))
		if s.Taken {
			d.RequeueAfter = recheck
		}
		d.Events = events(s.Permission, cp)
		return d
	}
	d.deliver(s, cp, manifests)
	d.Events = append(d.Events, events(s.Permission, cp)...)
	return d
}

// stays ends the message about what cannot be sent.
func stays(s State) string {
	if len(s.Works) == 0 {
		return ""
	}
	return "; the rights that were sent before stay until this is put right, or the ClusterPermission is deleted"
}

// validate sets the condition Validation, and returns why nothing can be sent.
func validate(s State, cp *permissionv1alpha1.ClusterPermission) string {
	status, reason, message := metav1.ConditionFalse, "", ""
	switch {
	case !grant.HasBindings(&cp.Spec):
		reason = permissionv1alpha1.ReasonNoBindings
		message = "spec: no binding is defined, so that nobody would have the rights; set clusterRoleBinding, clusterRoleBindings or roleBindings" + stays(s)
	case !s.Cluster:
		reason = permissionv1alpha1.ReasonNoCluster
		message = fmt.Sprintf("metadata.namespace: there is no ManagedCluster %s; create the ClusterPermission in the namespace of a cluster", cp.Namespace)
	case s.Leaving:
		reason = permissionv1alpha1.ReasonNoCluster
		message = fmt.Sprintf("metadata.namespace: ManagedCluster %s is being deleted; nothing is sent to it any more", cp.Namespace)
	default:
		status, reason = metav1.ConditionTrue, permissionv1alpha1.ReasonValidated
	}
	problem := message
	if problem == "" {
		message = "There are bindings, and cluster " + cp.Namespace + " exists"
	}
	s.setCondition(cp, permissionv1alpha1.ConditionValidation, status, reason, message)
	return problem
}

// render returns the objects, or why there are none.
func render(s State, cp *permissionv1alpha1.ClusterPermission) ([]grant.Manifest, error) {
	if problems := grant.Problems(cp); len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	if s.Taken {
		return nil, fmt.Errorf("metadata.name: ManifestWork %s/%s is not of this ClusterPermission; delete it, or use another name", cp.Namespace, workName(cp))
	}
	return grant.Render(cp, s.Facts)
}

// deliver brings the work to the objects, and reports what the agent says about them.
func (d *Decision) deliver(s State, cp *permissionv1alpha1.ClusterPermission, manifests []grant.Manifest) {
	work := workOf(cp, manifests)
	wanted, err := digestOf(work.Spec)
	if err != nil {
		s.setCondition(cp, permissionv1alpha1.ConditionApplied, metav1.ConditionFalse, permissionv1alpha1.ReasonBuildFailed, err.Error())
		return
	}
	have := d.choose(s.Works)
	if have.Name != "" {
		work.Name = have.Name
	}
	is := delivery{have: have, wanted: wanted, current: have.Name != "" && (have.Spec == wanted || have.Kept)}
	waiting := d.write(s, work, is)
	if !is.current || have.Deleting {
		have.Applied, have.Objects = nil, nil
	}
	report(s, cp, manifests, reported{Work: have, name: work.Name, waiting: waiting})
}

// choose returns the work to keep, which is empty if there is none, and removes others: after a
// restore there may be two.
func (d *Decision) choose(works []Work) Work {
	if len(works) == 0 {
		return Work{}
	}
	for _, more := range works[1:] {
		if !more.Deleting {
			d.Writes = append(d.Writes, reconcile.Remove{Target: reconcile.Target{
				Resource: worksResource, Namespace: more.Permission.Namespace, Name: more.Name, UID: more.UID,
			}})
		}
	}
	return works[0]
}

// delivery compares the work that there is with the spec that it should have.
type delivery struct {
	have    Work
	wanted  digest.Sum
	current bool
}

// write writes the work if it is not as it should be, and returns what it waits for otherwise.
func (d *Decision) write(s State, work *workv1.ManifestWork, is delivery) (waiting string) {
	have := is.have
	changed := have.Name != "" && !is.current && s.Last.Spec == is.wanted
	switch {
	case have.Deleting:
		return "the ManifestWork is being deleted, and is created again when it is gone"
	case is.current && (have.Kept || have.Owner == s.Permission.UID && have.Label == string(s.Permission.UID)):
		return ""
	case changed && s.Last.Base == have.Version:
		return "" // the cache does not show yet what was sent
	case changed && s.Now.Before(s.Last.Repaired.Add(patience)):
		d.RequeueAfter = s.Last.Repaired.Add(patience).Sub(s.Now)
		return "somebody else has changed the ManifestWork; it is put right once a minute at most"
	}
	d.Sent = Sent{Spec: is.wanted, Base: have.Version}
	if changed {
		d.Sent.Repaired = s.Now
		d.Events = append(d.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: reasonChanged, Message: fmt.Sprintf(
			"ManifestWork %s/%s was changed by somebody else, and is put right; edit the ClusterPermission instead", work.Namespace, work.Name)})
	}
	d.Writes = append(d.Writes, reconcile.Apply{Object: work, LiveVersion: have.Version, Exact: true})
	d.OnFailure = &metav1.Condition{
		Type: permissionv1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: permissionv1alpha1.ReasonBuildFailed,
		Message: "The ManifestWork cannot be written:", ObservedGeneration: s.Permission.Generation,
	}
	return ""
}

// workOf returns the desired work with the name of a new one.
func workOf(cp *permissionv1alpha1.ClusterPermission, manifests []grant.Manifest) *workv1.ManifestWork {
	return &workv1.ManifestWork{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cp.Namespace, Name: workName(cp), Labels: map[string]string{permissionv1alpha1.LabelClusterPermission: string(cp.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cp, permissionv1alpha1.GroupVersion.WithKind("ClusterPermission"))},
		},
		Spec: grant.Spec(manifests),
	}
}
