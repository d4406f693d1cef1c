// SPDX-License-Identifier: Apache-2.0

package workload

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for Deployments and their pods.
const (
	// DescribeDeployment shows all of a Deployment.
	DescribeDeployment fleet.RemedyCode = "workload.DescribeDeployment"
	// DescribePod shows all of a pod.
	DescribePod fleet.RemedyCode = "workload.DescribePod"
	// InstallHub restores what belongs to our hub.
	InstallHub fleet.RemedyCode = "workload.InstallHub"
	// Restart restarts the pods of a Deployment.
	Restart fleet.RemedyCode = "workload.Restart"
	// ScaleUp starts the pods of a Deployment again.
	ScaleUp fleet.RemedyCode = "workload.ScaleUp"
)
