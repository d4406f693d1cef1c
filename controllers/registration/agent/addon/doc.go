// SPDX-License-Identifier: Apache-2.0

// Package addon defines what the agent's loops for add-ons share: the ManagedClusterAddOns of
// its cluster on the hub, where an add-on runs, and whether it is hosted on the cluster the
// agent runs on.
//
// It reads add-ons at the version hubs store, so that a hub whose conversion webhook is down
// still serves them. status.kubeClientDriver at that version is
// status.registrations[].kubeClient.driver in version v1beta1, and spec.installNamespace is
// the annotation with the install namespace. Packages addoncredential and addonhealth do the
// work.
package addon
