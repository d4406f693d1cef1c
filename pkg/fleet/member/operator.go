// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// OperatorDeployment is the Deployment of an operator that runs the agents of Klusterlets, in the
// namespace of operators: ours and that of other distributions of this API have this name.
const OperatorDeployment = "klusterlet"

// Operator returns the Deployment of the operator of a cluster, whoever made it; nil without one.
func Operator(ctx context.Context, c *fleet.Cluster) (*appsv1.Deployment, error) {
	d, err := typed.Get[appsv1.Deployment](ctx, c.Client, fleet.Deployments, operatorv1.NamespaceOperator, OperatorDeployment)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return d, fleet.Explain("looking for an operator of klusterlets", c, err)
}

// ours are the first arguments with which our program is started. Those of other distributions are
// started by a command, or by the path of one.
var ours = []string{"run", "operator", "registration", "work", "agent"}

// RunsOurs returns as what a Deployment runs our program, whoever installed it; empty if it does not.
func RunsOurs(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		if len(c.Command) == 0 && len(c.Args) > 0 && slices.Contains(ours, c.Args[0]) {
			return c.Args[0]
		}
	}
	return ""
}
