// SPDX-License-Identifier: Apache-2.0

// Package templated runs the add-ons that are made of AddOnTemplates, all of them on
// one set of watches: what controllers/addon/template renders is what
// pkg/addonkit/runner brings to clusters.
//
// An instance is served when the ClusterManagementAddOn of its name lists addontemplates
// among its configurations, and as long as the instance itself says so in
// status.supportedConfigs: so it outlives its ClusterManagementAddOn until its hooks have
// run. What an instance gets is exactly what its status.configReferences name, by hash;
// as long as the objects there say something else, it keeps what it has.
//
// It reads AddOnTemplates, AddOnDeploymentConfigs and, to sign, the Secret of a signing
// CA. It writes what package runner says.
//
// Other than in the API's own implementation: content is pinned to its hash; a template
// or configuration that does not exist is told in the conditions; requests for other
// signers are compared with their registration; rights in a namespace that clusters
// share are bound for each of them, and taken away with it.
package templated
