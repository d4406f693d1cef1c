// SPDX-License-Identifier: Apache-2.0

// Package runner runs an add-on on the hub, in its author's process: three loops carry out
// what packages registration, deploy and health decide, for every ManagedClusterAddOn of
// the add-on. Run does so for one add-on, NewMany for all add-ons of a family whose names
// are not known in advance, with the same watches and loops.
//
// Of a ManagedClusterAddOn it owns the add-on finalizers, status.registrations,
// status.namespace, status.supportedConfigs, status.healthCheck and the conditions
// RegistrationApplied, ManifestApplied, HostingManifestApplied, HostingClusterValidity,
// HookManifestCompleted and, unless its health is a lease, Available. It also owns the
// ManifestWorks, roles and bindings of the add-on, and answers its certificate requests.
// The hub owns configuration hashes and the token driver.
//
// What it watches is kept packed and without manifests: about 2 KiB per instance, whatever
// its works hold.
package runner
