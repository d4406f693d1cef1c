// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Blocker looks on a managed cluster for what holds up the agent of a Klusterlet.
func Blocker(ctx context.Context, spoke *fleet.Cluster, klusterlet string) *fleet.Blocker {
	if spoke == nil {
		return nil
	}
	k, err := typed.Get[operatorv1.Klusterlet](ctx, spoke.Client, fleet.Klusterlets, "", klusterlet)
	namespace, deployment := NamespaceFor(klusterlet), operatorv1.AgentDeployment(klusterlet)
	if err == nil {
		if b := served(ctx, spoke, k); b != nil {
			return b
		}
		namespace, deployment = k.AgentNamespace(), Deployments(ctx, spoke, k)[0]
	}
	if b := workload.Blocker(ctx, spoke, namespace, deployment); b != nil {
		return b
	}
	switch {
	case apierrors.IsNotFound(err):
		return &fleet.Blocker{Cause: "klusterlet/" + klusterlet + " is gone", Fix: fleet.Advice("run join again")}
	case err != nil:
		return &fleet.Blocker{Cause: fleet.OneLine(err.Error())}
	}
	if c := apimeta.FindStatusCondition(k.Status.Conditions, operatorv1.ConditionApplied); c != nil && c.Status == "False" {
		return fleet.BlockedBy(c, nil)
	}
	logs := fleet.ShowLogs.On(spoke, "namespace", namespace, "name", deployment)
	switch c := apimeta.FindStatusCondition(k.Status.Conditions, operatorv1.ConditionHubConnectionDegraded); {
	case c == nil:
		return &fleet.Blocker{Cause: "the agent has written no condition to klusterlet/" + klusterlet, Fix: logs}
	case c.Status != "True":
		return nil
	case strings.Contains(c.Reason, operatorv1.ReasonBootstrapSecretUnauthorized):
		return fleet.BlockedBy(c, JoinWithNewToken.With())
	default:
		return fleet.BlockedBy(c, logs)
	}
}

// served looks for what keeps an operator from running the agent that a Klusterlet declares.
func served(ctx context.Context, spoke *fleet.Cluster, k *operatorv1.Klusterlet) *fleet.Blocker {
	operator, err := Operator(ctx, spoke)
	if err != nil || (operator == nil && !k.IsHosted()) {
		return nil
	}
	if operator != nil {
		if b := workload.Blocker(ctx, spoke, operator.Namespace, operator.Name); b != nil {
			return b
		}
	}
	for _, t := range []string{operatorv1.ConditionReadyToApply, operatorv1.ConditionApplied} {
		c := apimeta.FindStatusCondition(k.Status.Conditions, t)
		if c == nil || c.Status != "False" {
			continue
		}
		if t == operatorv1.ConditionReadyToApply {
			return fleet.BlockedBy(c, RenewManaged.On(spoke, "namespace", k.AgentNamespace()))
		}
		return fleet.BlockedBy(c, nil)
	}
	return nil
}

// Deployments returns the names of the Deployments that run the agent of a Klusterlet; what
// registers it comes first.
func Deployments(ctx context.Context, c *fleet.Cluster, k *operatorv1.Klusterlet) []string {
	apart := operatorv1.AgentDeployments(k.Name, operatorv1.InstallModeDefault)
	if mode := k.Spec.DeployOption.Mode; mode == operatorv1.InstallModeHosted || mode == operatorv1.InstallModeDefault || mode == "" {
		if _, err := typed.Get[appsv1.Deployment](ctx, c.Client, fleet.Deployments, k.AgentNamespace(), apart[0]); err == nil {
			return apart
		}
	}
	return []string{operatorv1.AgentDeployment(k.Name)}
}
