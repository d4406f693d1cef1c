// SPDX-License-Identifier: Apache-2.0

// Package addon is the hub's add-on manager: the loops that turn ClusterManagementAddOns into
// add-ons on clusters (gate AddonManagement). It holds no logic of its own; it gives the
// loops what they share:
//
//   - instance indexes all ManagedClusterAddOns and their works,
//   - selection indexes what each ClusterManagementAddOn asks for,
//   - config resolves which configurations apply on a cluster,
//   - install creates and deletes instances,
//   - progress rolls out configurations and reports the progress,
//   - token maintains the objects that the token driver needs,
//   - templated runs the add-ons that are defined by AddOnTemplates.
//
// All other registration, and the health, of add-ons is in controllers/registration.
package addon
