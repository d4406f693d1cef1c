// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Condition SpecSupported and its reasons; they are this project's own.
const (
	// conditionSpecSupported is False when the spec asks for something that
	// this layout does not do.
	conditionSpecSupported = "SpecSupported"
	// reasonAllFieldsSupported goes with SpecSupported True.
	reasonAllFieldsSupported = "AllFieldsSupported"
	// reasonNotSupported goes with SpecSupported False.
	reasonNotSupported = "NotSupported"
	// conditionServed is False on a Klusterlet that no agent serves; it is this
	// project's own.
	conditionServed = "Served"
	// reasonNotServed goes with Served False, and is that of the event.
	reasonNotServed = "NotServed"
)

const (
	// unauthorizedRetry is how soon access is asked about again that the hub has
	// not granted yet.
	unauthorizedRetry = 30 * time.Second
	// patience is how long the talk with the hub may fail before it is told: a
	// hub that starts again does not answer for a moment.
	patience = 5 * time.Second
	// stopRetry is how soon it is looked again whether the registration stopped.
	stopRetry = 100 * time.Millisecond
)

// Definition is what the cluster has of a definition.
type Definition struct {
	// ResourceVersion is empty when the definition is absent.
	ResourceVersion string
	// Version is the one of the program that wrote it last.
	Version string
	// Established tells that its objects are served.
	Established bool
}

// State is what a decision is made on.
type State struct {
	Now        time.Time
	Klusterlet *operatorv1.Klusterlet
	// Unreadable is why its spec cannot be read, empty when it can.
	Unreadable string
	// Wanted are the definitions to apply, Live what there is of them by name.
	Wanted []*unstructured.Unstructured
	Live   map[string]Definition
	// AddOnNamespace is what there is of the namespace of add-ons.
	AddOnNamespace Namespace
	// Deployment is the generation of the Deployment that runs the agent, zero
	// where none does.
	Deployment int64
	// Version is the one of this program, Namespace where it runs.
	Version, Namespace string
	// Registration is where that stands.
	Registration credential.Report
	// BootstrapSecret and HubSecret are the data of the secrets; nil: absent.
	BootstrapSecret, HubSecret map[string][]byte
	// Joined is the cluster that the kept certificate is for; empty without one.
	Joined string
	// Bootstrap and Hub are what the hub says about them.
	Bootstrap, Hub access.Answer
	// Trouble is what of the talk with the hub fails.
	Trouble agent.Trouble
	// Hubs is what of a list of hubs does not work.
	Hubs string
	// WorkProblem is why works are not carried out, empty while they are.
	WorkProblem string
}

// Plan is what a pass does.
type Plan struct {
	reconcile.Plan
	// Settings are handed to the registration; nil stops it.
	Settings *agent.Settings
	// Keep leaves the registration as it is, whatever Settings say.
	Keep bool
	// Remove tells to remove the agent; it is the last thing that happens.
	Remove bool
}

// Decide serves the Klusterlet.
func Decide(s State) Plan {
	if s.Klusterlet == nil {
		return Plan{}
	}
	if s.Klusterlet.DeletionTimestamp != nil {
		return s.removal()
	}
	next := s.Klusterlet.DeepCopy()
	if !slices.Contains(next.Finalizers, operatorv1.FinalizerKlusterlet) {
		next.Finalizers = append(next.Finalizers, operatorv1.FinalizerKlusterlet)
	}
	p := Plan{Plan: reconcile.Plan{Object: next, Writes: append(s.definitions(), s.addOnNamespace()...), OnFailure: &metav1.Condition{
		Type: operatorv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: operatorv1.ReasonCRDApplyFailed, ObservedGeneration: next.Generation,
	}}}
	asked := read(s.Klusterlet, s.Namespace)
	asked.invalid = cmp.Or(s.Unreadable, asked.invalid)
	s.holdName(&asked)
	next.Status.ObservedGeneration = next.Generation
	s.spec(next, asked)
	s.running(next)
	s.inventory(next)
	p.RequeueAfter = s.connection(next)
	p.Events = s.events(next)
	// Loops that watch what the definitions define start when they are served.
	p.Settings, p.Keep = &asked.settings, asked.invalid != "" || !s.established()
	return p
}

// holdName keeps the name that the agent has joined by. A spec that asks for another
// one may be the work of any tool; the name changes only by joining anew.
func (s State) holdName(asked *requested) {
	if s.Joined == "" || asked.settings.ClusterName == s.Joined {
		return
	}
	asked.refuse(asked.settings.ClusterName != "", fmt.Sprintf("clusterName %s (the agent is joined as %s and stays so; kubectl ocm join %[2]s sets the spec right, "+
		"kubectl ocm join %[1]s --rejoin takes another name)", asked.settings.ClusterName, s.Joined))
	asked.settings.ClusterName = s.Joined
}

// removal is the plan for a Klusterlet that is being deleted: first everything
// that talks to the hub stops, then the agent goes.
func (s State) removal() Plan {
	p := Plan{}
	if !slices.Contains(s.Klusterlet.Finalizers, operatorv1.FinalizerKlusterlet) {
		return p
	}
	if s.Registration.Phase != credential.PhaseStopped {
		p.RequeueAfter = stopRetry
		return p
	}
	p.Remove = true
	return p
}

// definitions are those to apply: none over a newer one.
func (s State) definitions() []reconcile.Write {
	var out []reconcile.Write
	for _, u := range s.Wanted {
		live := s.Live[u.GetName()]
		if newer(live.Version, s.Version) {
			continue
		}
		out = append(out, reconcile.Apply{Object: s.marked(u), LiveVersion: live.ResourceVersion})
	}
	return out
}

// marked is a definition with our labels and version on it.
func (s State) marked(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[operatorv1.LabelCreatedByKlusterlet] = s.Klusterlet.Name
	annotations[operatorv1.AnnotationVersion] = s.Version
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	return u
}

// newer tells whether the version a comes after b. One that is no version
// comes before all others.
func newer(a, b string) bool {
	va, err := version.ParseSemantic(a)
	if err != nil {
		return false
	}
	vb, err := version.ParseSemantic(b)
	return err != nil || vb.LessThan(va)
}

func (s State) established() bool {
	return !slices.ContainsFunc(s.Wanted, func(u *unstructured.Unstructured) bool { return !s.Live[u.GetName()].Established })
}

func (s State) set(k *operatorv1.Klusterlet, t string, status metav1.ConditionStatus, reason, message string) {
	reconcile.SetCondition(&k.Status.Conditions, metav1.Condition{
		Type: t, Status: status, Reason: reason, Message: message, ObservedGeneration: k.Generation,
	}, s.Now)
}

// spec sets the conditions about what was asked for.
func (s State) spec(k *operatorv1.Klusterlet, asked requested) {
	if asked.invalid != "" {
		s.set(k, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed, asked.invalid)
	} else {
		s.set(k, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied, "Definitions and settings are applied")
	}
	if s.Unreadable != "" {
		return
	}
	if len(asked.unknown) > 0 {
		s.set(k, operatorv1.ConditionValidFeatureGates, metav1.ConditionFalse, operatorv1.ReasonInvalidFeatureGatesExisting,
			"There are no feature gates with these names: "+strings.Join(asked.unknown, ", "))
	} else {
		s.set(k, operatorv1.ConditionValidFeatureGates, metav1.ConditionTrue, operatorv1.ReasonFeatureGatesAllValid, "All feature gates are known")
	}
	if len(asked.unsupported) > 0 {
		s.set(k, conditionSpecSupported, metav1.ConditionFalse, reasonNotSupported,
			"This agent does not support, and leaves out: "+strings.Join(asked.unsupported, ", "))
	} else {
		s.set(k, conditionSpecSupported, metav1.ConditionTrue, reasonAllFieldsSupported, "All fields of the spec are carried out")
	}
}

// running sets the conditions about the process. It is the one that writes
// them, so it runs; parts of it may still not do what they should.
func (s State) running(k *operatorv1.Klusterlet) {
	s.set(k, operatorv1.ConditionAvailable, metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable, "The agent is running")
	s.set(k, operatorv1.ConditionRegistrationDesiredDegraded, metav1.ConditionFalse, operatorv1.ReasonDeploymentsFunctional, "The registration agent is running")
	if s.WorkProblem != "" {
		s.set(k, operatorv1.ConditionWorkDesiredDegraded, metav1.ConditionTrue, operatorv1.ReasonUnavailablePods, "The work agent stopped: "+s.WorkProblem)
		return
	}
	s.set(
		k, operatorv1.ConditionWorkDesiredDegraded, metav1.ConditionFalse, operatorv1.ReasonDeploymentsFunctional,
		"The work agent is running or waits for access to the hub",
	)
}

// connection sets HubConnectionDegraded and returns when to ask the hub again.
// Before the registration has started nobody has asked the hub.
func (s State) connection(k *operatorv1.Klusterlet) time.Duration {
	if s.Registration.Phase == credential.PhaseStopped {
		return 0
	}
	hub, message := s.hubReason()
	if hub == "" {
		s.set(k, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionFalse, operatorv1.ReasonHubConnectionFunctional, "The agent has access to the hub")
		return s.untilLost()
	}
	bootstrap, more := s.bootstrapReason()
	parts := []string{message, more}
	switch s.Registration.Phase {
	case credential.PhaseDenied, credential.PhaseThrottled, credential.PhaseWaiting, credential.PhaseConnecting:
		parts = append(parts, s.Registration.Message)
	default:
	}
	if s.Registration.Bootstrap != "" {
		parts = append(parts, s.Hubs)
	}
	s.set(k, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, bootstrap+","+hub, sentences(parts))
	if !s.silent() && (hub == operatorv1.ReasonHubKubeConfigUnauthorized || s.Hub.Problem != "" || s.Registration.Unusable != "" || !s.Bootstrap.Granted()) {
		return unauthorizedRetry
	}
	return 0
}

// lost tells whether the talk with the hub has failed for too long.
func (s State) lost() bool { return s.Trouble.Problem != "" && s.untilLost() == 0 }

// silent tells whether it fails because the hub does not answer. The loops that
// found that out go on trying; nothing else has to ask.
func (s State) silent() bool { return s.lost() && !s.Trouble.Refused }

// untilLost is how long the talk with the hub may still fail; zero when it is
// lost or nothing fails.
func (s State) untilLost() time.Duration {
	if s.Trouble.Problem == "" {
		return 0
	}
	return max(0, s.Trouble.Since.Add(patience).Sub(s.Now))
}

// hubReason is the half of the reason that is about the kept access.
func (s State) hubReason() (reason, message string) {
	secret := "Secret " + clusterv1.SecretHubKubeconfig
	switch {
	case s.HubSecret == nil:
		return operatorv1.ReasonHubKubeConfigSecretMissing, secret + " is missing"
	case len(s.HubSecret[clusterv1.SecretKeyKubeconfig]) == 0:
		return operatorv1.ReasonHubKubeConfigMissing, secret + " has no kubeconfig"
	case len(s.HubSecret[clusterv1.SecretKeyClusterName]) == 0:
		return operatorv1.ReasonClusterNameMissing, secret + " has no cluster-name"
	case s.Registration.Unusable != "":
		return operatorv1.ReasonHubKubeConfigError, "The kept access cannot be used: " + s.Registration.Unusable
	case s.silent():
		return operatorv1.ReasonHubKubeConfigError, fmt.Sprintf("The hub does not answer since %s: %s", stamp(s.Trouble.Since), s.Trouble.Problem)
	case s.lost():
		return operatorv1.ReasonHubKubeConfigUnauthorized, fmt.Sprintf("The hub refuses the agent since %s: %s", stamp(s.Trouble.Since), s.Trouble.Problem)
	case s.Hub.Problem != "":
		return operatorv1.ReasonHubKubeConfigError, "The kept access does not work: " + s.Hub.Problem
	case s.Hub.Refused:
		return operatorv1.ReasonHubKubeConfigUnauthorized, refusal(s.Hub.Missing)
	}
	return "", ""
}

// refusal says what the hub does not grant. An agent that may not even see its
// own ManagedCluster has nothing at all; a list of all rights would hide why.
func refusal(missing []string) string {
	for _, right := range missing {
		if strings.HasPrefix(right, "get managedclusters.") {
			return "The hub does not let the agent see its ManagedCluster: the cluster was not accepted yet, or it was removed from the hub (join it again to ask anew)"
		}
	}
	return "The hub does not grant the agent its rights" + list(missing)
}

// bootstrapReason is the half of the reason that is about the bootstrap secret.
func (s State) bootstrapReason() (reason, message string) {
	switch {
	case s.Registration.Bootstrap == "":
		return operatorv1.ReasonBootstrapSecretError, cmp.Or(s.Hubs, "A hub is being chosen")
	case s.BootstrapSecret == nil || len(s.BootstrapSecret[clusterv1.SecretKeyKubeconfig]) == 0:
		return operatorv1.ReasonBootstrapSecretMissing, "Secret " + s.Registration.Bootstrap + " with key kubeconfig is missing"
	case s.Bootstrap.Problem != "":
		return operatorv1.ReasonBootstrapSecretError, "The bootstrap kubeconfig does not work: " + s.Bootstrap.Problem
	case s.Bootstrap.Refused:
		return operatorv1.ReasonBootstrapSecretUnauthorized, "The hub refuses the bootstrap kubeconfig" + list(s.Bootstrap.Missing)
	}
	return operatorv1.ReasonBootstrapSecretFunctional, ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func list(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return ": " + strings.Join(missing, ", ")
}

func sentences(parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ". ")
}

// events tells, once for each change, what a person may have to act on.
func (s State) events(next *operatorv1.Klusterlet) []reconcile.Event {
	before := message(s.Klusterlet)
	after := message(next)
	if s.Registration.Phase != credential.PhaseDenied || before == after || strings.Contains(before, s.Registration.Message) {
		return nil
	}
	return []reconcile.Event{{Type: "Warning", Reason: "CertificateRequestDenied", Message: s.Registration.Message}}
}

func message(k *operatorv1.Klusterlet) string {
	for _, c := range k.Status.Conditions {
		if c.Type == operatorv1.ConditionHubConnectionDegraded {
			return c.Message
		}
	}
	return ""
}
