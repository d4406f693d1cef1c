// SPDX-License-Identifier: Apache-2.0

// Package addon is the hub's add-on manager: the loops that make add-ons of
// clusters out of ClusterManagementAddOns (gate AddonManagement). It holds no logic
// of its own; it gives the loops what they share:
//
//   - instance knows all ManagedClusterAddOns and their works,
//   - selection knows what each ClusterManagementAddOn asks for,
//   - config is which configurations count on a cluster,
//   - install makes and removes instances,
//   - progress rolls configurations out and tells how far they are,
//   - token keeps what the token driver needs,
//   - templated runs the add-ons that are made of AddOnTemplates.
//
// Other registration and health of add-ons are elsewhere: in controllers/registration.
package addon
