// SPDX-License-Identifier: Apache-2.0

// Package template renders an AddOnTemplate for one cluster: the manifests of the agent, the
// credentials it needs, and the namespace it runs in.
//
// Variables are replaced in the strings of a decoded manifest, never in its JSON, so that no
// value can break out of its string; values are not searched for variables again. Then all
// workloads get environment variables about their cluster and their credentials as files, and
// are adapted to the AddOnDeploymentConfigs of the cluster: nodes, images, proxy, resources,
// namespace.
//
// Beyond what Open Cluster Management does: all kinds that run pods are adapted, with their
// init containers, not only Deployments and DaemonSets; every AddOnDeploymentConfig counts,
// with the first one taking precedence; tolerations work without a nodeSelector and a CA
// bundle without a proxy; the manifest configurations are taken from the template that the
// cluster really has, and follow the namespace.
//
// The package is pure: it reads and writes nothing. Which template and configurations a
// cluster has is decided by controllers/addon/config.
package template
