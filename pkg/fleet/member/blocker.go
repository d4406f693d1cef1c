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

// Deployment is the name of the agent's Deployment in the compact layout.
const Deployment = "klusterlet-agent"

// Blocker looks on a managed cluster for what holds up its agent.
func Blocker(ctx context.Context, spoke *fleet.Cluster) *fleet.Blocker {
	if spoke == nil {
		return nil
	}
	if b := workload.Blocker(ctx, spoke, operatorv1.NamespaceAgent, Deployment); b != nil {
		return b
	}
	k, err := typed.Get[operatorv1.Klusterlet](ctx, spoke.Client, fleet.Klusterlets, "", operatorv1.DefaultKlusterletName)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return &fleet.Blocker{Cause: "klusterlet/klusterlet is gone", Fix: fleet.Advice("run join again")}
		}
		return &fleet.Blocker{Cause: fleet.OneLine(err.Error())}
	}
	if c := apimeta.FindStatusCondition(k.Status.Conditions, operatorv1.ConditionApplied); c != nil && c.Status == "False" {
		return fleet.BlockedBy(c, nil)
	}
	logs := fleet.ShowLogs.On(spoke, "namespace", operatorv1.NamespaceAgent, "name", "klusterlet-agent")
	c := apimeta.FindStatusCondition(k.Status.Conditions, operatorv1.ConditionHubConnectionDegraded)
	if c == nil {
		return &fleet.Blocker{Cause: "the agent has written no condition to klusterlet/klusterlet",
			Fix: logs}
	}
	if c.Status != "True" {
		return nil
	}
	if strings.Contains(c.Reason, operatorv1.ReasonBootstrapSecretUnauthorized) {
		return fleet.BlockedBy(c, JoinWithNewToken.With())
	}
	return fleet.BlockedBy(c, logs)
}
