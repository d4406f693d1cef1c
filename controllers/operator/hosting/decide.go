// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/remotetoken"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// tokenSecret holds the access of the process to its hub, as its ServiceAccount there.
	tokenSecret = hub.Name + "-kubeconfig"
	// evictionGrace is how long a hub may stay out of reach before its ClusterManager is deleted
	// without it.
	evictionGrace = 5 * time.Minute
	// Reasons that the API does not define.
	reasonNotServed = "ClusterManagerNotServed"
	reasonRemoving  = "ClusterManagerTerminating"
)

// serviceNames are the Services of a hub, which do not depend on the name of its ClusterManager.
var serviceNames = []string{hub.RegistrationService, hub.WorkService, hub.AddonService, hub.PlacementService}

// State is the input of Decide.
type State struct {
	ClusterManager *operatorv1.ClusterManager
	Now            time.Time
	// Unreadable is why its spec cannot be read; empty when it can.
	Unreadable string
	// Version is the release, Image that of the process with its policy.
	Version, Image, Pull string
	// Wanted are the objects that there should be on the hub, in the order to apply; the last is its
	// ClusterManager.
	Wanted []*unstructured.Unstructured
	Here   Here
	Hub    Hub
	// KeepAPIs is described at Config.
	KeepAPIs bool
	// Waiting is what the removal of the hub waits for; Cleaned is true when nothing is left.
	Waiting string
	Cleaned bool
}

// Here is the namespace of the hub on this cluster.
type Here struct {
	// Problem is why it cannot be read; empty when it can.
	Problem string
	// Access leads to the hub, Token holds the access of the process; nil without them.
	Access, Token *Seen
	Services      map[string]Seen
	Deployment    *Deployment
}

// Hub is the cluster of the hub.
type Hub struct {
	// Problem is why it cannot be changed; empty when it can. Absent is true when that is the Secret,
	// and not the cluster.
	Problem string
	Absent  bool
	// Seen are the objects that it has of those that it should have.
	Seen map[reconcile.Target]Seen
	// Manager is its ClusterManager; nil without one.
	Manager *operatorv1.ClusterManager
	// Kubeconfig is that of the process, which names a token beside it.
	Kubeconfig []byte
}

// Stage is a list of writes, on the hub or here, or a token to request.
type Stage struct {
	Writes []reconcile.Write
	Hub    bool
	// Await is true when the API of the objects may not be served yet.
	Await bool
	Token *remotetoken.Token
	// Reason goes with Applied False when the stage fails.
	Reason string
}

// Plan is what to do: the stages in their order, then the rest.
type Plan struct {
	reconcile.Plan
	Stages []Stage
	// End is a Deployment to end, and Clean is true to remove the hub.
	End   *Deployment
	Clean bool
}

func owned(name string) map[string]string {
	return map[string]string{operatorv1.LabelCreatedByClusterManager: name}
}

// hostedBy is the value of the annotation on the ClusterManager of the hub.
func (s State) hostedBy() string { return s.ClusterManager.Name + "/" + string(s.ClusterManager.UID) }

// refusal returns why the ClusterManager is not served at all; empty if it is.
func (s State) refusal() string {
	cm := s.ClusterManager
	switch {
	case cm.DeletionTimestamp != nil:
		return ""
	case s.Unreadable != "":
		return s.Unreadable
	case cm.Spec.DeployOption.Mode != operatorv1.InstallModeHosted:
		return "The hub of this cluster is the one of ClusterManager " + hub.Name + ", and any other must have spec.deployOption.mode Hosted"
	case !operatorv1.CanBeHosted(cm.Name):
		return "A hosted hub runs in the namespace that has the name of its ClusterManager, and " + cm.Name + " cannot be that of a hub: choose another name"
	}
	if err := image.Check("registrationImagePullSpec", cm.Spec.RegistrationImagePullSpec); err != nil {
		return err.Error()
	}
	return ""
}

// isDone reports whether the ClusterManager is being deleted and nothing is left to do.
func (s State) isDone() bool {
	return s.ClusterManager.DeletionTimestamp != nil && !slices.Contains(s.ClusterManager.Finalizers, operatorv1.FinalizerClusterManager)
}

// Decide returns the next steps towards a working hub. It is a pure function.
func Decide(s State) Plan {
	if s.isDone() {
		return Plan{}
	}
	if problem := s.refusal(); problem != "" {
		return Plan{Plan: reconcile.Plan{Object: s.failed(reasonNotServed, problem)}}
	}
	name := s.ClusterManager.Name
	if s.Here.Problem != "" {
		text := "The operator cannot read namespace " + name + ": " + s.Here.Problem
		if strings.Contains(s.Here.Problem, "forbidden") {
			text += ". An administrator permits it with: " + hub.AllowHosting(name)
		}
		if s.ClusterManager.DeletionTimestamp != nil {
			s.Hub = Hub{Problem: text, Absent: true}
			return s.remove()
		}
		return Plan{Plan: reconcile.Plan{Object: s.failed(operatorv1.ReasonRuntimeResourceApplyFailed, text), RequeueAfter: endCheck}}
	}
	if s.ClusterManager.DeletionTimestamp != nil {
		return s.remove()
	}
	if err := clustermanager.CheckAddresses(s.ClusterManager.Spec); err != nil {
		return Plan{Plan: reconcile.Plan{Object: s.failed(operatorv1.ReasonWebhookApplyFailed, err.Error())}}
	}
	if problem := s.taken(); problem != "" {
		return Plan{Plan: reconcile.Plan{Object: s.failed(operatorv1.ReasonRuntimeResourceApplyFailed, problem)}}
	}
	if s.Hub.Problem == "" && s.isForeign() {
		s.Hub.Problem = fmt.Sprintf("The cluster is a hub already, of its ClusterManager %s in mode %s (annotation %s: %q): remove that hub first",
			hub.Name, s.Hub.Manager.Spec.DeployOption.Mode, operatorv1.AnnotationHostedBy, s.Hub.Manager.Annotations[operatorv1.AnnotationHostedBy])
	}
	if s.Hub.Problem != "" {
		return Plan{Plan: reconcile.Plan{Object: s.failed(operatorv1.ReasonHubResourceApplyFailed, s.Hub.Problem), RequeueAfter: hubCheck}}
	}
	if next := s.ClusterManager.DeepCopy(); !slices.Contains(next.Finalizers, operatorv1.FinalizerClusterManager) {
		// It comes before what it protects.
		next.Finalizers = append(next.Finalizers, operatorv1.FinalizerClusterManager)
		return Plan{Plan: reconcile.Plan{Object: next}}
	}
	return s.install()
}

// isForeign reports whether the hub's ClusterManager is not the one that this operator made.
func (s State) isForeign() bool {
	m := s.Hub.Manager
	return m != nil && m.Annotations[operatorv1.AnnotationHostedBy] != s.hostedBy()
}

// taken returns what prevents the namespace here from being used; empty if nothing does.
func (s State) taken() string {
	name := s.ClusterManager.Name
	if d := s.Here.Deployment; d != nil && d.Owner != name {
		return "Deployment " + name + "/" + hub.Name + " belongs to others"
	}
	if t := s.Here.Token; t != nil && t.Owner != name {
		return "Secret " + name + "/" + tokenSecret + " belongs to others"
	}
	return ""
}

// install returns the stages of a hub: what it needs on its cluster, the token of its process, and
// what runs here.
func (s State) install() Plan {
	p := Plan{}
	var onHub, manager []reconcile.Write
	for _, u := range s.Wanted {
		if u.GetKind() == "ClusterManager" {
			manager = append(manager, s.manager(u))
			continue
		}
		onHub = append(onHub, reconcile.Apply{Object: u, LiveVersion: s.Hub.Seen[targetOf(u)].Version})
	}
	p.Stages = []Stage{
		{Writes: onHub, Hub: true, Reason: operatorv1.ReasonHubResourceApplyFailed},
		{Writes: manager, Hub: true, Await: true, Reason: operatorv1.ReasonHubResourceApplyFailed},
	}
	account := s.Hub.Seen[reconcile.Target{Resource: accountsResource, Namespace: hub.Namespace, Name: hub.Name}]
	token := remotetoken.Token{Namespace: hub.Namespace, Account: hub.Name, UID: account.UID, Kubeconfig: s.Hub.Kubeconfig}
	var held map[string][]byte
	if s.Here.Token != nil {
		held = s.Here.Token.Data
	}
	left := token.Left(held, s.Now)
	switch {
	case account.UID == "": // its event comes
	case left <= 0:
		p.Stages = append(p.Stages, Stage{Token: &token, Reason: operatorv1.ReasonServiceAccountSyncFailed})
	default:
		p.RequeueAfter = left
	}
	if account.UID != "" || s.Here.Token != nil {
		writes, err := s.process()
		if err != nil {
			return Plan{Plan: reconcile.Plan{Object: s.failed(operatorv1.ReasonRuntimeResourceApplyFailed, err.Error())}}
		}
		p.Stages = append(p.Stages, Stage{Writes: writes, Reason: operatorv1.ReasonRuntimeResourceApplyFailed})
	}
	p.Object = s.status()
	return p
}

// manager returns the apply of the hub's ClusterManager, which has the spec of the one here.
func (s State) manager(u *unstructured.Unstructured) reconcile.Write {
	wanted := &operatorv1.ClusterManager{
		TypeMeta: metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()},
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Labels: u.GetLabels(), Annotations: map[string]string{operatorv1.AnnotationHostedBy: s.hostedBy()},
		},
		Spec: s.ClusterManager.Spec,
	}
	write := reconcile.Apply{Object: wanted, Exact: true}
	if s.Hub.Manager != nil {
		write.LiveVersion = s.Hub.Manager.ResourceVersion
	}
	return write
}

// remove ends the process, then removes the hub, then what is here.
func (s State) remove() Plan {
	next := s.ClusterManager.DeepCopy()
	d := s.Here.Deployment
	mine := d != nil && d.Owner == next.Name
	left := s.Hub.Problem != "" && s.isGivenUp()
	switch {
	case mine && !d.Leaving:
		s.removing(next, "Waiting for the process of the hub to end")
		return Plan{Plan: reconcile.Plan{Object: next, RequeueAfter: endCheck}, End: d}
	case mine:
		return Plan{Plan: reconcile.Plan{RequeueAfter: endCheck}}
	case s.Cleaned, s.Hub.Problem == "" && s.isForeign(), left:
	case s.Hub.Problem != "":
		return s.awaitHub(next)
	case s.Waiting != "":
		s.removing(next, "Waiting for "+s.Waiting)
		return Plan{Plan: reconcile.Plan{Object: next, RequeueAfter: endCheck}}
	default:
		return Plan{Clean: true}
	}
	p := Plan{Stages: []Stage{{Writes: s.removals(), Reason: operatorv1.ReasonRuntimeResourceApplyFailed}}}
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == operatorv1.FinalizerClusterManager })
	p.Object = next
	if left {
		p.Events = append(p.Events, reconcile.Event{
			Type: "Warning", Reason: "HubLeft", Once: true, Namespace: operatorv1.NamespaceOperator,
			Message: "The hub could not be removed from its cluster, and stays there without a process: " + s.Hub.Problem,
		})
	}
	return p
}

// removals returns the removals of what is here, except for what others made.
func (s State) removals() []reconcile.Write {
	name := s.ClusterManager.Name
	var out []reconcile.Write
	for _, service := range serviceNames {
		if seen, ok := s.Here.Services[service]; ok {
			out = append(out, reconcile.Remove{Target: reconcile.Target{Resource: servicesResource, Namespace: name, Name: service, UID: seen.UID}})
		}
	}
	if t := s.Here.Token; t != nil && t.Owner == name {
		out = append(out, reconcile.Remove{Target: reconcile.Target{Resource: request.Secrets, Namespace: name, Name: tokenSecret, UID: t.UID}})
	}
	return out
}

// isGivenUp reports whether the hub has been out of reach for too long; an administrator says so
// with an earlier time.
func (s State) isGivenUp() bool {
	at, err := time.Parse(time.RFC3339, s.ClusterManager.Annotations[operatorv1.AnnotationManagedResourcesEvictionTimestamp])
	return err == nil && !s.Now.Before(at.Add(evictionGrace))
}

// awaitHub is the plan while the hub cannot be removed from its cluster. The time runs while the
// cluster is out of reach, and not while the Secret is missing that leads there.
func (s State) awaitHub(next *operatorv1.ClusterManager) Plan {
	const key = operatorv1.AnnotationManagedResourcesEvictionTimestamp
	if _, err := time.Parse(time.RFC3339, next.Annotations[key]); err != nil && !s.Hub.Absent {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, key, s.Now.UTC().Format(time.RFC3339))
	}
	s.removing(next, s.Hub.Problem+". The hub is still to be removed from its cluster. It is left there once the annotation "+key+" is five minutes old")
	return Plan{Plan: reconcile.Plan{Object: next, RequeueAfter: hubCheck}}
}
