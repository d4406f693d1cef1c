// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// HealthMode is where the health of an add-on is read.
type HealthMode string

// Ways to tell health.
const (
	// HealthLease reads the lease that the agent of the add-on renews.
	HealthLease HealthMode = "Lease"
	// HealthWork reads the values that Probes ask for; without probes it is enough
	// that the manifests are applied.
	HealthWork HealthMode = "Work"
	// HealthDeployments wants a ready replica of each Deployment.
	HealthDeployments HealthMode = "DeploymentAvailability"
	// HealthWorkloads wants each DaemonSet to be everywhere, too.
	HealthWorkloads HealthMode = "WorkloadAvailability"
	// HealthNone leaves condition Available to the add-on.
	HealthNone HealthMode = "None"
)

// Health says how the health of an add-on is told.
type Health struct {
	// Mode is where it is read; empty leaves it as it is, which is the lease.
	Mode HealthMode
	// Probes are the values that mode HealthWork reads.
	Probes []Probe
	// Check judges them; nil is content with any. An error is why the add-on is not
	// available.
	Check func(results []Result, i Instance) error
}

// Probe is a value of a manifest's object.
type Probe struct {
	// Resource is the object; a * in name or namespace stands for any text.
	Resource workv1.ResourceIdentifier
	// Rules are the values.
	Rules []workv1.FeedbackRule
}

// Result is what the cluster says of one object.
type Result struct {
	Resource workv1.ResourceIdentifier
	Feedback workv1.StatusFeedbackResult
}
