// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"strings"

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
	namespace, deployment := NamespaceFor(klusterlet), operatorv1.AgentDeployment(klusterlet)
	if b := workload.Blocker(ctx, spoke, namespace, deployment); b != nil {
		return b
	}
	k, err := typed.Get[operatorv1.Klusterlet](ctx, spoke.Client, fleet.Klusterlets, "", klusterlet)
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
