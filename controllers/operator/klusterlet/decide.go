// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// patience is how long communication with the hub may fail before it is reported: a hub
	// that restarts does not answer for a moment.
	patience = 5 * time.Second
	// stopRetry is how often to check whether the registration has stopped.
	stopRetry = 100 * time.Millisecond
	// readRetry is how often to check whether the cluster can be read.
	readRetry = time.Second
)

// State is the input of Decide.
type State struct {
	// Parts are what all agents of this cluster share.
	shared.Parts
	Now        time.Time
	Klusterlet *operatorv1.Klusterlet
	// Unreadable is why the spec of the Klusterlet cannot be read; empty when it can.
	Unreadable string
	// Reading is true while the cluster has not been read; Unread is then why it cannot be, if it
	// cannot.
	Reading bool
	Unread  string
	// Deployment is the generation of the Deployment that runs the agent; zero if none does. Pod are
	// its pods; nil when there is none.
	Deployment int64
	Pod        *shared.Pod
	// Namespace is the namespace that this program runs in.
	Namespace string
	// Registration is the state of the registration.
	Registration credential.Report
	// BootstrapSecret and HubSecret are the data of the secrets; nil when absent.
	BootstrapSecret, HubSecret map[string][]byte
	// SecretsKnown is false while the agent's secrets have not been read.
	SecretsKnown bool
	// Joined is the identity in the agent's certificate; empty without a certificate.
	Joined agent.Identity
	// Bootstrap and Hub are what the hub grants to these secrets.
	Bootstrap, Hub access.Answer
	// Trouble is what fails in the communication with the hub.
	Trouble agent.Trouble
	// Hubs is what is wrong with the list of hubs.
	Hubs string
	// WorkProblem is why works are not applied; empty while they are.
	WorkProblem string
	// Policies are the NetworkPolicies of the agent, by name, and APIPorts the ports of the API servers
	// that it calls.
	Policies map[string]policy
	APIPorts []int64
	// Pull is the image pull secret beside the agent, and Profile what limits connections: add-ons get
	// copies in the namespaces that ask for them, AddOnNamespaces.
	Pull, Profile   original
	AddOnNamespaces []string
	// ProfileProblem is why Profile cannot be read; empty when it can.
	ProfileProblem string
}

// Plan is what a pass does.
type Plan struct {
	reconcile.Plan
	// Settings are handed to the registration; nil stops it.
	Settings *agent.Settings
	// Keep leaves the registration as it is, whatever Settings say.
	Keep bool
	// Remove is true when the agent is to be removed, as the last step.
	Remove bool
}

// Decide returns what to write for the Klusterlet and how to configure its registration. It
// is a pure function.
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
	asked := settings.Read(s.Klusterlet)
	asked.Invalid = cmp.Or(s.Unreadable, asked.Invalid)
	s.Properties = asked.Settings.Properties
	p := Plan{Plan: reconcile.Plan{Object: next, OnFailure: &metav1.Condition{
		Type: operatorv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: operatorv1.ReasonCRDApplyFailed, ObservedGeneration: next.Generation,
	}}}
	p.Writes = slices.Concat(s.Writes(), s.policyWrites(asked.Policies), s.copyWrites(s.Pull), s.copyWrites(s.Profile))
	if s.IsEstablished() {
		p.OnFailure.Reason = operatorv1.ReasonManagementClusterResourceApplyFailed
	}
	s.holdName(&asked)
	addUnsupported(&asked, s.Klusterlet.Spec, s.Namespace, s.Pod)
	next.Status.ObservedGeneration = next.Generation
	s.setSpecConditions(next, asked)
	s.setRunningConditions(next)
	s.setInventory(next)
	p.RequeueAfter = s.setConnection(next)
	if s.Reading && (p.RequeueAfter == 0 || p.RequeueAfter > readRetry) {
		p.RequeueAfter = readRetry
	}
	p.Events = s.events(next)
	// The registration's loops watch resources of these definitions, so they start once these
	// are established, and once it is known under which name the agent has joined.
	p.Settings, p.Keep = &asked.Settings, asked.Invalid != "" || !s.IsEstablished() || !s.SecretsKnown
	return p
}

// holdName keeps the identity that the agent joined with. Any tool may have written another name
// into the spec; only a new join changes the name. An agent that was adopted, or whose Klusterlet
// was made again, keeps the name of its certificate.
func (s State) holdName(asked *settings.Asked) {
	if s.Joined.Cluster == "" {
		return
	}
	asked.Settings.AgentName = s.Joined.Agent
	if asked.Settings.ClusterName == s.Joined.Cluster {
		return
	}
	asked.AddUnsupported(asked.Settings.ClusterName != "", fmt.Sprintf(
		"clusterName %s (the agent is joined as %s and keeps that name; kubectl ocm join %[2]s corrects the spec, "+
			"kubectl ocm join %[1]s --rejoin takes another name)",
		asked.Settings.ClusterName, s.Joined.Cluster,
	))
	asked.Settings.ClusterName = s.Joined.Cluster
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

func (s State) setCondition(k *operatorv1.Klusterlet, t string, status metav1.ConditionStatus, reason, message string) {
	reconcile.SetCondition(&k.Status.Conditions, metav1.Condition{
		Type: t, Status: status, Reason: reason, Message: message, ObservedGeneration: k.Generation,
	}, s.Now)
}

// setSpecConditions sets the conditions about the requested settings.
func (s State) setSpecConditions(k *operatorv1.Klusterlet, asked settings.Asked) {
	if problem := cmp.Or(asked.Invalid, s.Unread, s.ProfileProblem); problem != "" {
		s.setCondition(k, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed, problem)
	} else {
		s.setCondition(k, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied, "Definitions and settings are applied")
	}
	if s.Unreadable != "" {
		return
	}
	for _, c := range asked.Conditions() {
		s.setCondition(k, c.Type, c.Status, c.Reason, c.Message)
	}
}

// setRunningConditions sets the conditions about the process. It is this process that writes
// them, so it is running; parts of it may still have failed.
func (s State) setRunningConditions(k *operatorv1.Klusterlet) {
	s.setCondition(k, operatorv1.ConditionAvailable, metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable, "The agent is running")
	s.setCondition(
		k, operatorv1.ConditionRegistrationDesiredDegraded, metav1.ConditionFalse, operatorv1.ReasonDeploymentsFunctional,
		"The registration agent is running",
	)
	if s.WorkProblem != "" {
		s.setCondition(k, operatorv1.ConditionWorkDesiredDegraded, metav1.ConditionTrue, operatorv1.ReasonUnavailablePods, "The work agent stopped: "+s.WorkProblem)
		return
	}
	s.setCondition(
		k, operatorv1.ConditionWorkDesiredDegraded, metav1.ConditionFalse, operatorv1.ReasonDeploymentsFunctional,
		"The work agent is running or waiting for access to the hub",
	)
}

// setConnection sets HubConnectionDegraded and returns after how long to ask the hub again.
// Before the registration has started, the hub has not been asked.
func (s State) setConnection(k *operatorv1.Klusterlet) time.Duration {
	if s.Registration.Phase == credential.PhaseStopped {
		return 0
	}
	hub, message := s.hubReason()
	if hub == "" {
		s.setCondition(
			k, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionFalse, operatorv1.ReasonHubConnectionFunctional,
			"The agent has access to the hub",
		)
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
	s.setCondition(k, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, bootstrap+","+hub, sentences(parts))
	if !s.isSilent() && (hub == operatorv1.ReasonHubKubeConfigUnauthorized || s.Hub.Problem != "" || s.Registration.Unusable != "" || !s.Bootstrap.Granted()) {
		return access.Retry
	}
	return 0
}

// isLost reports whether communication with the hub has failed for longer than patience.
func (s State) isLost() bool { return s.Trouble.Problem != "" && s.untilLost() == 0 }

// isSilent reports whether communication is lost because the hub does not answer. The loops
// that found that out keep retrying; nothing else has to ask.
func (s State) isSilent() bool { return s.isLost() && !s.Trouble.Refused }

// untilLost returns how much longer communication with the hub may fail; zero when it is lost
// or nothing fails.
func (s State) untilLost() time.Duration {
	if s.Trouble.Problem == "" {
		return 0
	}
	return max(0, s.Trouble.Since.Add(patience).Sub(s.Now))
}

// hubReason returns the half of the reason that is about the hub kubeconfig; empty when it
// works.
func (s State) hubReason() (reason, message string) {
	if reason, message = access.MissingReason(s.HubSecret); reason != "" {
		return reason, message
	}
	switch {
	case s.Registration.Unusable != "":
		return operatorv1.ReasonHubKubeConfigError, "The kept access cannot be used: " + s.Registration.Unusable
	case s.isSilent():
		return operatorv1.ReasonHubKubeConfigError, fmt.Sprintf("The hub has not answered since %s: %s", formatTime(s.Trouble.Since), s.Trouble.Problem)
	case s.isLost():
		return operatorv1.ReasonHubKubeConfigUnauthorized, fmt.Sprintf("The hub has refused the agent since %s: %s", formatTime(s.Trouble.Since), s.Trouble.Problem)
	}
	return access.HubReason(s.Hub)
}

// bootstrapReason returns the half of the reason that is about the bootstrap secret.
func (s State) bootstrapReason() (reason, message string) {
	if s.Registration.Bootstrap == "" {
		return operatorv1.ReasonBootstrapSecretError, cmp.Or(s.Hubs, "A hub is being chosen")
	}
	return access.BootstrapReason(s.Registration.Bootstrap, s.BootstrapSecret, s.Bootstrap)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func sentences(parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ". ")
}

// events returns, once for each change, what a user may have to act on.
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
