// SPDX-License-Identifier: Apache-2.0

// Package addonhealth reports to the hub whether add-ons are alive, judged by the leases they
// renew: condition Available of each ManagedClusterAddOn.
//
// It watches one lease for each add-on, by its name in the add-on's namespace, and polls
// nothing: a namespace may hold any number of other leases, and some of them change every
// second. An add-on is judged by when the agent saw its renewTime change, not by the add-on's
// clock, and becomes unavailable 300 seconds later. Add-ons whose own controller reports
// their health are ignored, and so are all add-ons while the hub considers the whole cluster
// lost: then the hub writes the condition.
package addonhealth
