// SPDX-License-Identifier: Apache-2.0

// Package addonkit is what somebody implements who writes an add-on.
//
// An add-on is a type with two methods, Options and Manifests. What else it needs
// it says by one more method each: Registrar, Permitter, Approver, Signer, Healthy,
// Placed, Hosted, Configured. A type that has none of them is an add-on without
// access to the hub, whose health is told by its lease.
//
// The methods read and answer; they write nothing. What follows from the answers is
// decided by the packages below, which are pure:
//
//   - deploy: which ManifestWorks, finalizers and conditions,
//   - health: whether the add-on is available,
//   - registration: which rights it gets on the hub, and which certificate requests
//     are its own.
//
// Package runner carries it out. For manifests there are gotemplate, helm and values, for
// the agent of an add-on lease; docs/guides/addon.md builds an add-on with them.
//
// An instance is seen at the version that hubs store, v1alpha1.
//
// Other than in the API's own implementation: Manifests is asked once a pass;
// rights are declared and carried out by the hub, so that they are those of one
// cluster and go with it; hooks have a deadline.
//
// Public, with the packages below: what is exported keeps its meaning within a minor
// version.
package addonkit
