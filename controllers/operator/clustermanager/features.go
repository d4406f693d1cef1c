// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Names of feature gates.
const (
	gateDefaultClusterSet = "DefaultClusterSet"
	gateResourceCleanup   = "ResourceCleanup"
	GateAutoApproval      = "ManagedClusterAutoApproval"
	gateNilExecutor       = "NilExecutorValidating"
	gateReplicaSet        = "ManifestWorkReplicaSet"
	gateCleanUpCompleted  = "CleanUpCompletedManifestWork"
	gateClusterProfile    = "ClusterProfile"
	gateClusterImporter   = "ClusterImporter"
	gatePermission        = "ClusterPermission"
	gatePlacementDebug    = "PlacementDebugServer"
	gateAddOnManagement   = "AddonManagement"
	gateServiceAccount    = "ManagedServiceAccount"
	gateEphemeralIdentity = "ManagedServiceAccountEphemeralIdentity"
	gateNetworkPolicies   = "NetworkPolicies"
	gateClusterProxy      = connectv1alpha1.GateClusterProxy
)

// Features are the features that the ClusterManager enables.
type Features struct {
	// DefaultClusterSet maintains the cluster sets default and global.
	DefaultClusterSet bool
	// ResourceCleanup removes the resources of a deleted cluster from the hub.
	ResourceCleanup bool
	// NilExecutorValidating also checks works that name no executor.
	NilExecutorValidating bool
	// ManifestWorkReplicaSet deploys works to placements.
	ManifestWorkReplicaSet bool
	// CleanUpCompletedManifestWork deletes completed works whose time to live has expired.
	CleanUpCompletedManifestWork bool
	// AddOnManagement installs add-ons and rolls out their configurations.
	AddOnManagement bool
	// ManagedServiceAccount serves ManagedServiceAccounts, and EphemeralIdentity ends those whose
	// time is over.
	ManagedServiceAccount bool
	EphemeralIdentity     bool
	// ClusterProfile maintains a ClusterProfile for each cluster in each namespace that is
	// bound to a set which contains the cluster.
	ClusterProfile bool
	// ProfilesServed is true when the ClusterProfile API is served, whoever installed it.
	ProfilesServed bool
	// ClusterPermission gives rights on clusters as ClusterPermissions say.
	ClusterPermission bool
	// PermissionsServed is true when the ClusterPermission API is served, whoever installed it,
	// and no other controller serves it.
	PermissionsServed bool
	// ClusterImporter installs the agent on clusters of Cluster API; Renderers build its
	// settings.
	ClusterImporter bool
	Renderers       []string
	// PlacementDebugServer serves over HTTP what placements select, and why. It does not
	// affect the loops.
	PlacementDebugServer bool
	// NetworkPolicies limits what reaches the hub's pods, and what they reach.
	// It does not affect the loops.
	NetworkPolicies bool
	// ClusterProxy serves the API that leads to managed clusters. It does not affect the loops.
	ClusterProxy bool
	// AutoApprove lists the users whose clusters are accepted automatically; empty unless the
	// gate ManagedClusterAutoApproval is on.
	AutoApprove []string
	// Labels are set on the namespace and the RBAC objects of every cluster, besides the
	// labels that name the cluster.
	Labels map[string]string
}

// Equal reports whether the loops run the same way with f and o.
func (f Features) Equal(o Features) bool {
	return f.DefaultClusterSet == o.DefaultClusterSet && f.ResourceCleanup == o.ResourceCleanup &&
		f.NilExecutorValidating == o.NilExecutorValidating && f.ManifestWorkReplicaSet == o.ManifestWorkReplicaSet &&
		f.CleanUpCompletedManifestWork == o.CleanUpCompletedManifestWork && f.AddOnManagement == o.AddOnManagement &&
		f.ManagedServiceAccount == o.ManagedServiceAccount && f.EphemeralIdentity == o.EphemeralIdentity &&
		f.ClusterImporter == o.ClusterImporter && f.sameAPIs(o) && slices.Equal(f.Renderers, o.Renderers) &&
		slices.Equal(f.AutoApprove, o.AutoApprove) && maps.Equal(f.Labels, o.Labels)
}

// sameAPIs reports whether f and o use the same APIs that the hub may lack.
func (f Features) sameAPIs(o Features) bool {
	return f.ClusterProfile == o.ClusterProfile && f.ProfilesServed == o.ProfilesServed &&
		f.ClusterPermission == o.ClusterPermission && f.PermissionsServed == o.PermissionsServed
}

// gate is one feature gate of a component.
type gate struct {
	on        bool
	supported bool
	// operator is true when the operator alone serves it.
	operator bool
}

// The feature gates of each component, with their defaults. Unsupported ones are known by
// name only.
var (
	registrationGates = map[string]gate{
		gateDefaultClusterSet: {on: true, supported: true}, gateResourceCleanup: {on: true, supported: true},
		GateAutoApproval: {supported: true}, "V1beta1CSRAPICompatibility": {}, gateClusterProfile: {supported: true},
		gateClusterImporter: {supported: true}, gateNetworkPolicies: {supported: true, operator: true},
		gateClusterProxy: {supported: true, operator: true},
	}
	workGates = map[string]gate{
		gateNilExecutor: {supported: true}, gateReplicaSet: {supported: true}, gateCleanUpCompleted: {supported: true}, "CloudEventsDrivers": {},
		gatePermission: {supported: true},
	}
	addonGates = map[string]gate{
		gateAddOnManagement: {on: true, supported: true}, gateServiceAccount: {supported: true}, gateEphemeralIdentity: {supported: true},
	}
	// addOnManagerGates are what its Deployment knows: it copies credentials beside profiles.
	addOnManagerGates = map[string]gate{
		gateServiceAccount: addonGates[gateServiceAccount], gateEphemeralIdentity: addonGates[gateEphemeralIdentity],
		gateClusterProfile: registrationGates[gateClusterProfile],
	}
	placementGates = map[string]gate{"SIGPlacementDecision": {}, gatePlacementDebug: {supported: true}}
)

// featuresOf returns the features that gates switch, by name.
func featuresOf(on map[string]bool) Features {
	return Features{
		DefaultClusterSet: on[gateDefaultClusterSet], ResourceCleanup: on[gateResourceCleanup], ClusterProfile: on[gateClusterProfile],
		ClusterImporter:       on[gateClusterImporter],
		ClusterPermission:     on[gatePermission],
		NilExecutorValidating: on[gateNilExecutor], ManifestWorkReplicaSet: on[gateReplicaSet], CleanUpCompletedManifestWork: on[gateCleanUpCompleted],
		AddOnManagement: on[gateAddOnManagement], PlacementDebugServer: on[gatePlacementDebug],
		ManagedServiceAccount: on[gateServiceAccount], EphemeralIdentity: on[gateEphemeralIdentity],
		NetworkPolicies: on[gateNetworkPolicies], ClusterProxy: on[gateClusterProxy],
	}
}

// gates returns what the supported gates of components are set to, by name.
func (f Features) gates() map[string]bool {
	return map[string]bool{
		gateDefaultClusterSet: f.DefaultClusterSet, gateResourceCleanup: f.ResourceCleanup, gateClusterProfile: f.ClusterProfile,
		gateClusterImporter: f.ClusterImporter, gatePermission: f.ClusterPermission,
		gateNilExecutor: f.NilExecutorValidating, gateReplicaSet: f.ManifestWorkReplicaSet, gateCleanUpCompleted: f.CleanUpCompletedManifestWork,
		gateServiceAccount: f.ManagedServiceAccount, gateEphemeralIdentity: f.EphemeralIdentity,
		gateAddOnManagement: f.AddOnManagement, gatePlacementDebug: f.PlacementDebugServer, GateAutoApproval: len(f.AutoApprove) > 0,
	}
}

// ParseGates returns the features of a component whose flags switch these gates; the others
// have their defaults. ClusterProfile and ClusterPermission are named only where their APIs are
// served.
func ParseGates(given map[string]string) (Features, error) {
	on := map[string]bool{}
	for _, gates := range []map[string]gate{registrationGates, workGates, addonGates, placementGates} {
		for name, g := range gates {
			on[name] = g.on
			value, ok := given[name]
			if !ok {
				continue
			}
			var err error
			if on[name], err = strconv.ParseBool(value); err != nil {
				return Features{}, fmt.Errorf("feature gate %s=%s: use true or false", name, value)
			}
			if on[name] && (!g.supported || g.operator) {
				return Features{}, fmt.Errorf("feature gate %s is not supported", name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := on[name]; !known {
			return Features{}, fmt.Errorf("there is no feature gate %s", name)
		}
	}
	f := featuresOf(on)
	_, f.ProfilesServed = given[gateClusterProfile]
	_, f.PermissionsServed = given[gatePermission]
	return f, nil
}

// parseFeatures reads the gates of all components. unknown are gates that no component has;
// unsupported are enabled gates and drivers that are not supported.
func parseFeatures(spec operatorv1.ClusterManagerSpec) (f Features, unknown, unsupported []string) {
	on := map[string]bool{}
	read := func(known map[string]gate, given []operatorv1.FeatureGate) {
		for name, g := range known {
			on[name] = g.on
		}
		for _, g := range given {
			have, ok := known[g.Feature]
			enabled := g.Mode == operatorv1.FeatureGateModeTypeEnable
			switch {
			case !ok:
				unknown = append(unknown, g.Feature)
			case enabled && !have.supported:
				unsupported = append(unsupported, g.Feature)
			default:
				on[g.Feature] = enabled
			}
		}
	}
	var registration operatorv1.RegistrationHubConfiguration
	if spec.RegistrationConfiguration != nil {
		registration = *spec.RegistrationConfiguration
	}
	read(registrationGates, registration.FeatureGates)
	var work, addons, placement []operatorv1.FeatureGate
	if spec.WorkConfiguration != nil {
		work = spec.WorkConfiguration.FeatureGates
	}
	read(workGates, work)
	if spec.AddOnManagerConfiguration != nil {
		addons = spec.AddOnManagerConfiguration.FeatureGates
	}
	read(addonGates, addons)
	if spec.PlacementConfiguration != nil {
		placement = spec.PlacementConfiguration.FeatureGates
	}
	read(placementGates, placement)
	f = featuresOf(on)
	if on[GateAutoApproval] {
		f.AutoApprove = approvers(registration)
	}
	if c := registration.ImporterConfiguration; f.ClusterImporter && c != nil {
		f.Renderers = c.Renderers
	}
	unsupported = append(unsupported, drivers(registration, spec.WorkConfiguration)...)
	slices.Sort(unknown)
	slices.Sort(unsupported)
	return f, slices.Compact(unknown), slices.Compact(unsupported)
}

// complete sets what does not depend on the gates: whether APIs that others may install are
// served, and the labels of the objects of clusters, see State.
func (f *Features) complete(cm *operatorv1.ClusterManager, apis APIs, labels map[string]string, sync bool) {
	f.ProfilesServed, f.PermissionsServed, f.Labels = apis.Profiles.Served, apis.Permissions.Served && !apis.Rival, labels
	if sync {
		f.Labels = syncedLabels(cm.Labels)
		maps.Copy(f.Labels, labels)
	}
}

// approvers returns the auto-approved identities of the csr driver. They replace those of the
// older field as a whole.
func approvers(c operatorv1.RegistrationHubConfiguration) []string {
	if users := csrIdentities(c); len(users) > 0 {
		return users
	}
	return c.AutoApproveUsers
}

// csrIdentities returns the auto-approved identities of the csr driver.
func csrIdentities(c operatorv1.RegistrationHubConfiguration) []string {
	for _, driver := range c.RegistrationDrivers {
		if (driver.AuthType == operatorv1.AuthTypeCSR || driver.AuthType == "") && driver.CSR != nil && len(driver.CSR.AutoApprovedIdentities) > 0 {
			return driver.CSR.AutoApprovedIdentities
		}
	}
	return nil
}

// drivers returns the requested registration and work drivers that are not supported.
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

// labelPrefix is the domain of the label keys that the API reserves.
const labelPrefix = "open-cluster-management.io"

// syncedLabels returns the labels of a ClusterManager that are also set on the objects of its
// clusters.
func syncedLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return key == "app" || strings.HasPrefix(key, labelPrefix) })
	return out
}

// CheckLabels returns an error for labels that cannot be set on the objects of clusters: keys
// and values that Kubernetes does not accept, and keys that the API reserves.
func CheckLabels(labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if faults := validation.IsQualifiedName(key); len(faults) > 0 {
			return fmt.Errorf("label key %q: %s", key, strings.Join(faults, "; "))
		}
		if faults := validation.IsValidLabelValue(labels[key]); len(faults) > 0 {
			return fmt.Errorf("value %q of label %s: %s", labels[key], key, strings.Join(faults, "; "))
		}
		if domain, _, _ := strings.Cut(key, "/"); domain == labelPrefix || strings.HasSuffix(domain, "."+labelPrefix) {
			return fmt.Errorf("label key %q: keys below %s belong to the hub; choose another key", key, labelPrefix)
		}
	}
	return nil
}
