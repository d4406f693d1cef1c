// SPDX-License-Identifier: Apache-2.0

// Package runner runs an add-on on the hub, in the process of its author: three loops
// that carry out what packages registration, deploy and health decide, for every
// ManagedClusterAddOn of the name. Run does so for one add-on, NewMany for all add-ons of
// a kind, whose names are not known before, on the same watches and loops.
//
// It owns of a ManagedClusterAddOn its finalizers of add-ons, status.registrations,
// status.namespace, status.supportedConfigs, status.healthCheck and the conditions
// RegistrationApplied, ManifestApplied, HostingManifestApplied, HostingClusterValidity,
// HookManifestCompleted and, unless its health is a lease, Available; the ManifestWorks,
// roles and bindings of the add-on; and the answers to its certificate requests. Hashes
// of configurations and the token driver are the hub's.
//
// What it watches it keeps packed, and works without their manifests: some two KiB an
// instance, whatever its works hold.
package runner
