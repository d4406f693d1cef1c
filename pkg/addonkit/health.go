// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// HealthMode is how the health of an add-on is read.
type HealthMode string

// Modes of health.
const (
	// HealthLease reads the lease that the agent of the add-on renews.
	HealthLease HealthMode = "Lease"
	// HealthWork reads the values that Probes ask for; without probes the add-on is
	// available once its manifests are applied.
	HealthWork HealthMode = "Work"
	// HealthDeployments requires a ready replica of each Deployment.
	HealthDeployments HealthMode = "DeploymentAvailability"
	// HealthWorkloads also requires each DaemonSet to be ready on all its nodes.
	HealthWorkloads HealthMode = "WorkloadAvailability"
	// HealthNone leaves condition Available to the add-on.
	HealthNone HealthMode = "None"
)

// Health says how the health of an add-on is read.
type Health struct {
	// Mode is how it is read; empty leaves the instance's mode, which is the lease by
	// default.
	Mode HealthMode
	// Probes are the values that mode HealthWork reads.
	Probes []Probe
	// Check evaluates them; nil accepts any. An error is why the add-on is not available.
	Check func(results []Result, i Instance) error
}

// Probe asks for values of a manifest's object.
type Probe struct {
	// Resource is the object; a * in its name or namespace stands for any text.
	Resource workv1.ResourceIdentifier
	// Rules are the values.
	Rules []workv1.FeedbackRule
}

// Result is what the cluster reports of one object.
type Result struct {
	Resource workv1.ResourceIdentifier
	Feedback workv1.StatusFeedbackResult
}
