// SPDX-License-Identifier: Apache-2.0

// Package addonkit is what the author of an add-on implements.
//
// An add-on is a type with two methods, Options and Manifests. For anything else it needs
// it has one more method each: Registrar, Permitter, Approver, Signer, Healthy, Placed,
// Hosted, Configured. A type with none of these is an add-on without access to the hub,
// whose health is reported by its lease.
//
// The methods read and answer; they write nothing. The packages below decide what follows
// from the answers, and are pure:
//
//   - deploy: which ManifestWorks, finalizers and conditions,
//   - health: whether the add-on is available,
//   - registration: which permissions it gets on the hub, and which certificate requests
//     are its own.
//
// Package runner carries the decisions out. Packages gotemplate, helm and values make
// manifests, and lease is for the add-on's agent; docs/guides/addon.md builds an add-on
// with them.
//
// Instances are passed in the version that hubs store, v1alpha1.
//
// Differences from the API's own implementation: Manifests is called once per pass;
// permissions are declared by the add-on and bound by the hub, for one cluster each, and
// are removed with it; hooks have a deadline.
//
// Public, with the packages below: exported names keep their meaning within a minor
// version.
package addonkit
