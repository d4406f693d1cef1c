// SPDX-License-Identifier: Apache-2.0

// Package runner runs an add-on on the hub, in the process of its author: three loops
// that carry out what packages registration, deploy and health decide, for every
// ManagedClusterAddOn of the name.
//
// It owns of a ManagedClusterAddOn its finalizers of add-ons, status.registrations,
// status.namespace, status.supportedConfigs, status.healthCheck and the conditions
// RegistrationApplied, ManifestApplied, HostingManifestApplied, HostingClusterValidity,
// HookManifestCompleted and, unless its health is a lease, Available; the ManifestWorks,
// roles and bindings of the add-on; and the answers to its certificate requests. Hashes
// of configurations and the token driver are the hub's.
//
// Contract: addon.md 5 and 6.
package runner
