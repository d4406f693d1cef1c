// SPDX-License-Identifier: Apache-2.0

// Package addon is the vocabulary of what an agent does for add-ons: the
// ManagedClusterAddOns of its cluster on the hub, where an add-on runs, and
// whether it is hosted on the cluster that the agent runs on.
//
// It reads them at the version that hubs store, so that a hub whose conversion
// webhook is away serves them all the same; status.kubeClientDriver there is
// status.registrations[].kubeClient.driver in version v1beta1, and
// spec.installNamespace there is the annotation with the install namespace.
// Packages addoncredential and addonhealth do the work.
package addon
