// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"reflect"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func (s State) set(cm *operatorv1.ClusterManager, kind string, status metav1.ConditionStatus, reason, message string) {
	reconcile.SetCondition(&cm.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: cm.Generation,
	}, s.Now)
}

// failed returns the ClusterManager with Applied False. What runs stays as it is, and so do the
// conditions about it.
func (s State) failed(reason, message string) *operatorv1.ClusterManager {
	next := s.ClusterManager.DeepCopy()
	next.Status.ObservedGeneration = next.Generation
	s.set(next, operatorv1.ConditionApplied, metav1.ConditionFalse, reason, message)
	return next
}

func (s State) removing(next *operatorv1.ClusterManager, message string) {
	s.set(next, operatorv1.ConditionProgressing, metav1.ConditionTrue, reasonRemoving, message)
}

// status returns the ClusterManager with the conditions of the hub's: as far as its process runs,
// they are what it reports.
func (s State) status() *operatorv1.ClusterManager {
	next := s.ClusterManager.DeepCopy()
	next.Status.ObservedGeneration = next.Generation
	s.setInventory(next)
	rolling := func(message string) {
		s.set(next, operatorv1.ConditionProgressing, metav1.ConditionTrue, operatorv1.ReasonClusterManagerDeploymentRolling, message)
	}
	d, m := s.Here.Deployment, s.Hub.Manager
	name := "Deployment " + next.Name + "/" + hub.Name
	switch {
	case d == nil:
		s.degrade(next, operatorv1.ReasonGetRegistrationDeploymentFailed, operatorv1.ReasonGetPlacementDeploymentFailed, name+" does not exist")
		rolling("Waiting for " + name + " to exist")
	case d.Unavailable:
		s.degrade(next, operatorv1.ReasonUnavailableRegistrationPod, operatorv1.ReasonUnavailablePlacementPod, name+" has fewer available pods than it wants")
		rolling("Waiting for " + name + " to have an available pod")
	case m == nil, m.Status.ObservedGeneration != m.Generation, !reflect.DeepEqual(m.Spec, next.Spec):
		rolling("Waiting for the hub process to observe ClusterManager " + hub.Name + " on the hub")
	default:
		for _, c := range m.Status.Conditions {
			s.set(next, c.Type, c.Status, c.Reason, c.Message)
		}
		for _, c := range next.Status.Conditions {
			if apimeta.FindStatusCondition(m.Status.Conditions, c.Type) == nil {
				apimeta.RemoveStatusCondition(&next.Status.Conditions, c.Type)
			}
		}
		if d.Rolling {
			rolling("Waiting for Deployments: " + hub.Name)
		}
	}
	return next
}

func (s State) degrade(next *operatorv1.ClusterManager, registration, placement, message string) {
	s.set(next, operatorv1.ConditionHubRegistrationDegraded, metav1.ConditionTrue, registration, message)
	s.set(next, operatorv1.ConditionHubPlacementDegraded, metav1.ConditionTrue, placement, message)
}

// setInventory sets the related resources, of the hub and here, and the generation of the
// Deployment.
func (s State) setInventory(next *operatorv1.ClusterManager) {
	var out []operatorv1.RelatedResourceMeta
	if s.Hub.Manager != nil {
		out = append(out, s.Hub.Manager.Status.RelatedResources...)
	}
	for _, service := range serviceNames {
		out = append(out, operatorv1.RelatedResourceMeta{Version: "v1", Resource: "services", Namespace: next.Name, Name: service})
	}
	next.Status.RelatedResources = append(out,
		operatorv1.RelatedResourceMeta{Version: "v1", Resource: "secrets", Namespace: next.Name, Name: tokenSecret},
		operatorv1.RelatedResourceMeta{Group: "apps", Version: "v1", Resource: "deployments", Namespace: next.Name, Name: hub.Name},
	)
	next.Status.Generations = nil
	if d := s.Here.Deployment; d != nil {
		next.Status.Generations = []operatorv1.GenerationStatus{{
			Group: "apps", Version: "v1", Resource: "deployments", Namespace: next.Name, Name: hub.Name, LastGeneration: d.Generation,
		}}
	}
}
