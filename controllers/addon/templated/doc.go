// SPDX-License-Identifier: Apache-2.0

// Package templated runs the add-ons that are defined by AddOnTemplates, all with one set of
// watches: pkg/addonkit/runner deploys what controllers/addon/template renders.
//
// An instance is served if the ClusterManagementAddOn with its name lists addontemplates
// among its configurations, or the instance itself does in status.supportedConfigs: so it
// outlives its ClusterManagementAddOn until its hooks have run. An instance gets exactly the
// contents that its status.configReferences name by hash; while the objects have other
// content, it keeps what it has.
//
// It reads AddOnTemplates, AddOnDeploymentConfigs and, to sign, the Secret of a signing CA.
// For what it writes, see package runner.
//
// Unlike in Open Cluster Management's own implementation, content is pinned to its hash;
// conditions report a template or configuration that does not exist; requests for custom
// signers are compared with their registration; and rights in a namespace that clusters share
// are bound separately for each cluster, and removed with it.
package templated
