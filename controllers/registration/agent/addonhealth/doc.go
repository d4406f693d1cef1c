// SPDX-License-Identifier: Apache-2.0

// Package addonhealth tells the hub whether add-ons are alive, by the leases that
// they renew: condition Available of each ManagedClusterAddOn.
//
// It watches one lease for each add-on, by its name in the add-on's namespace, and
// polls nothing: a namespace may hold any number of other leases, and some of them
// change every second. An add-on is judged by when the agent saw its renewTime
// change, not by what its clock says, and becomes unavailable 300 seconds after.
// Add-ons whose health their own controller reports are left alone, and so is every
// add-on while the hub holds the whole cluster for lost: then the hub writes the
// condition.
package addonhealth
