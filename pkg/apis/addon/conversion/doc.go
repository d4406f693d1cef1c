// SPDX-License-Identifier: Apache-2.0

// Package conversion turns ClusterManagementAddOns and ManagedClusterAddOns from
// one version of addon.open-cluster-management.io into the other, v1alpha1 and
// v1beta1.
//
// It owns the rules by which the two versions differ and works on objects as they come over
// the wire, so that everything that the rules do not name passes through unchanged. Its
// functions are pure: they read and write nothing but their arguments and results. It does
// not serve the webhook, and it does not handle AddOnDeploymentConfig and AddOnTemplate,
// whose versions have the same fields.
//
// What cannot be kept, because one version has no field for it, is listed in the tests, one
// test each. Three conversions in a row give the same result as one.
package conversion
