// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func (s State) setCondition(k *operatorv1.Klusterlet, t string, status metav1.ConditionStatus, reason, message string) {
	reconcile.SetCondition(&k.Status.Conditions, metav1.Condition{
		Type: t, Status: status, Reason: reason, Message: message, ObservedGeneration: k.Generation,
	}, s.Now)
}

// setConditions sets the conditions about the spec and the Deployments.
func (s State) setConditions(k *operatorv1.Klusterlet, asked settings.Asked, problem string) {
	if problem != "" {
		s.setCondition(k, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed, problem)
	} else {
		s.setCondition(k, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied, "The agent is applied")
	}
	if s.Unreadable == "" {
		for _, c := range asked.Conditions() {
			s.setCondition(k, c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if asked.Invalid != "" {
		// What runs stays as it is.
		return
	}
	status, reason, message := metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable, "The agent is running"
	for _, p := range s.processes() {
		name := k.Name + p.suffix
		d, found := s.Deployments[reconcile.Key{Namespace: s.agentNamespace(), Name: name}]
		switch {
		case !found:
			status, reason, message = metav1.ConditionFalse, operatorv1.ReasonGetDeploymentFailed, "Deployment "+name+" does not exist"
		case d.Available < 1 && status == metav1.ConditionTrue:
			status, reason, message = metav1.ConditionFalse, operatorv1.ReasonNoAvailablePods, "Deployment "+name+" has no available pod"
		}
		s.setDegraded(k, p, d, found)
	}
	s.setCondition(k, operatorv1.ConditionAvailable, status, reason, message)
}

// setDegraded sets the conditions about the pods of one process.
func (s State) setDegraded(k *operatorv1.Klusterlet, p process, d Deployment, found bool) {
	name := k.Name + p.suffix
	status, reason, message := metav1.ConditionFalse, operatorv1.ReasonDeploymentsFunctional, "Deployment "+name+" has the pods that it asks for"
	switch {
	case !found:
		status, reason, message = metav1.ConditionTrue, operatorv1.ReasonGetDeploymentFailed, "Deployment "+name+" does not exist"
	case d.Wanted > d.Available:
		status, reason, message = metav1.ConditionTrue, operatorv1.ReasonUnavailablePods, "Deployment "+name+" lacks available pods"
	}
	if p.registration {
		s.setCondition(k, operatorv1.ConditionRegistrationDesiredDegraded, status, reason, message)
	}
	if p.work {
		s.setCondition(k, operatorv1.ConditionWorkDesiredDegraded, status, reason, message)
	}
}

// isAvailable reports whether every wanted Deployment is as written and has the pods it asks for.
func (s State) isAvailable(wanted []*unstructured.Unstructured) bool {
	return !slices.ContainsFunc(wanted, func(u *unstructured.Unstructured) bool {
		d, found := s.Deployments[reconcile.KeyOf(u)]
		return !found || !s.Written[d.Key] || d.Available < max(d.Wanted, 1)
	})
}

// hubReason returns the half of the reason of HubConnectionDegraded that is about the hub
// kubeconfig; empty when it works.
func (s State) hubReason() (reason, message string) {
	if reason, message = access.MissingReason(s.HubSecret); reason != "" {
		return reason, message
	}
	return access.HubReason(s.Hub)
}

// setConnection sets HubConnectionDegraded and returns after how long to ask the hub again. Of
// several bootstrap secrets the agent chooses one; the operator does not read them.
func (s State) setConnection(k *operatorv1.Klusterlet, asked settings.Asked) time.Duration {
	hub, message := s.hubReason()
	if hub == "" {
		s.setCondition(
			k, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionFalse, operatorv1.ReasonHubConnectionFunctional,
			"The agent has access to the hub",
		)
		return 0
	}
	if len(asked.Settings.Hubs) > 0 {
		s.setCondition(k, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, hub, message+". The agent chooses one of several bootstrap secrets")
		return access.Retry
	}
	bootstrap, more := access.BootstrapReason(operatorv1.SecretBootstrapHubKubeconfig, s.BootstrapSecret, s.Bootstrap)
	if more != "" {
		message = strings.Join([]string{message, more}, ". ")
	}
	s.setCondition(k, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, bootstrap+","+hub, message)
	if hub == operatorv1.ReasonHubKubeConfigUnauthorized || s.Hub.Problem != "" || (s.BootstrapSecret != nil && !s.Bootstrap.Granted()) {
		return access.Retry
	}
	return 0
}

// setInventory sets the related resources of the agent and the generations of its Deployments.
func (s State) setInventory(k *operatorv1.Klusterlet, wanted []*unstructured.Unstructured, policies bool) {
	k.Status.RelatedResources, k.Status.Generations = nil, nil
	add := func(resource, group, version, namespace, name string) {
		k.Status.RelatedResources = append(k.Status.RelatedResources, operatorv1.RelatedResourceMeta{
			Group: group, Version: version, Resource: resource, Namespace: namespace, Name: name,
		})
	}
	for _, u := range s.Wanted {
		add("customresourcedefinitions", "apiextensions.k8s.io", "v1", "", u.GetName())
	}
	add("namespaces", "", "v1", "", s.agentNamespace())
	if !s.NoAddOns {
		add("namespaces", "", "v1", "", operatorv1.NamespaceAgentAddOn)
	}
	for _, w := range s.Rights {
		at := reconcile.TargetOf(w)
		add(at.Resource.Resource, at.Resource.Group, at.Resource.Version, at.Namespace, at.Name)
	}
	if policies {
		for _, name := range shared.PolicyNames() {
			add(policiesResource.Resource, policiesResource.Group, policiesResource.Version, s.agentNamespace(), name)
		}
	}
	for _, u := range wanted {
		add("deployments", "apps", "v1", u.GetNamespace(), u.GetName())
		if d, ok := s.Deployments[reconcile.KeyOf(u)]; ok {
			k.Status.Generations = append(k.Status.Generations, operatorv1.GenerationStatus{
				Group: "apps", Version: "v1", Resource: "deployments", Namespace: u.GetNamespace(), Name: u.GetName(), LastGeneration: d.Generation,
			})
		}
	}
}
