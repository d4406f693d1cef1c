// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"slices"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Names of feature gates (operator.md 4).
const (
	gateDefaultClusterSet = "DefaultClusterSet"
	gateResourceCleanup   = "ResourceCleanup"
	gateAutoApproval      = "ManagedClusterAutoApproval"
	gateNilExecutor       = "NilExecutorValidating"
	gateReplicaSet        = "ManifestWorkReplicaSet"
)

// Features are what the ClusterManager asks for.
type Features struct {
	// DefaultClusterSet keeps the sets default and global.
	DefaultClusterSet bool
	// ResourceCleanup removes what a deleted cluster has on the hub.
	ResourceCleanup bool
	// NilExecutorValidating also checks works that name no executor.
	NilExecutorValidating bool
	// ManifestWorkReplicaSet deploys works to placements.
	ManifestWorkReplicaSet bool
	// AutoApprove lists the users whose clusters need no person; empty unless
	// the gate ManagedClusterAutoApproval is on.
	AutoApprove []string
}

// Equal tells whether both ask for the same.
func (f Features) Equal(o Features) bool {
	return f.DefaultClusterSet == o.DefaultClusterSet && f.ResourceCleanup == o.ResourceCleanup &&
		f.NilExecutorValidating == o.NilExecutorValidating && f.ManifestWorkReplicaSet == o.ManifestWorkReplicaSet &&
		slices.Equal(f.AutoApprove, o.AutoApprove)
}

// gate is one feature gate of a component.
type gate struct {
	on        bool
	supported bool
}

// gates that a component knows, with their defaults. Those that are not
// supported here are accepted by name.
var (
	registrationGates = map[string]gate{
		gateDefaultClusterSet: {on: true, supported: true}, gateResourceCleanup: {on: true, supported: true},
		gateAutoApproval: {supported: true}, "V1beta1CSRAPICompatibility": {}, "ClusterProfile": {}, "ClusterImporter": {}, "NetworkPolicies": {},
	}
	workGates = map[string]gate{
		gateNilExecutor: {supported: true}, gateReplicaSet: {supported: true}, "CloudEventsDrivers": {}, "CleanUpCompletedManifestWork": {},
	}
	addonGates     = map[string]gate{"AddonManagement": {on: true, supported: true}}
	placementGates = map[string]gate{"SIGPlacementDecision": {}, "PlacementDebugServer": {}}
)

// parseFeatures reads the gates of all components. unknown are names that no
// component has; unsupported are gates that are switched on and not served.
func parseFeatures(spec operatorv1.ClusterManagerSpec) (f Features, unknown, unsupported []string) {
	read := func(known map[string]gate, given []operatorv1.FeatureGate) map[string]bool {
		out := map[string]bool{}
		for name, g := range known {
			out[name] = g.on
		}
		for _, g := range given {
			have, ok := known[g.Feature]
			on := g.Mode == operatorv1.FeatureGateModeTypeEnable
			switch {
			case !ok:
				unknown = append(unknown, g.Feature)
			case on && !have.supported:
				unsupported = append(unsupported, g.Feature)
			default:
				out[g.Feature] = on
			}
		}
		return out
	}
	var registration operatorv1.RegistrationHubConfiguration
	if spec.RegistrationConfiguration != nil {
		registration = *spec.RegistrationConfiguration
	}
	on := read(registrationGates, registration.FeatureGates)
	f.DefaultClusterSet, f.ResourceCleanup = on[gateDefaultClusterSet], on[gateResourceCleanup]
	if on[gateAutoApproval] {
		f.AutoApprove = approvers(registration)
	}
	if spec.WorkConfiguration != nil {
		on = read(workGates, spec.WorkConfiguration.FeatureGates)
		f.NilExecutorValidating, f.ManifestWorkReplicaSet = on[gateNilExecutor], on[gateReplicaSet]
	}
	if spec.AddOnManagerConfiguration != nil {
		read(addonGates, spec.AddOnManagerConfiguration.FeatureGates)
	}
	if spec.PlacementConfiguration != nil {
		read(placementGates, spec.PlacementConfiguration.FeatureGates)
	}
	unsupported = append(unsupported, drivers(registration, spec.WorkConfiguration)...)
	slices.Sort(unknown)
	slices.Sort(unsupported)
	return f, slices.Compact(unknown), slices.Compact(unsupported)
}

// approvers are the identities of the csr driver, or the older field, which
// the newer one replaces as a whole.
func approvers(c operatorv1.RegistrationHubConfiguration) []string {
	for _, driver := range c.RegistrationDrivers {
		if (driver.AuthType == operatorv1.AuthTypeCSR || driver.AuthType == "") && driver.CSR != nil && len(driver.CSR.AutoApprovedIdentities) > 0 {
			return driver.CSR.AutoApprovedIdentities
		}
	}
	return c.AutoApproveUsers
}

// drivers names the ways of registration and of work transport that are asked
// for and not served yet.
func drivers(registration operatorv1.RegistrationHubConfiguration, work *operatorv1.WorkConfiguration) []string {
	var out []string
	for _, d := range registration.RegistrationDrivers {
		if d.AuthType != operatorv1.AuthTypeCSR && d.AuthType != "" {
			out = append(out, "registration driver "+d.AuthType)
		}
	}
	if work != nil && work.WorkDriver != "" && work.WorkDriver != "kube" {
		out = append(out, "work driver "+work.WorkDriver)
	}
	return out
}
