// SPDX-License-Identifier: Apache-2.0

// Package template turns an AddOnTemplate into what one cluster gets of it: the
// manifests of the agent, the credentials it needs, and the namespace it runs in.
//
// Variables are replaced in the texts of a manifest after it was read, never in its
// JSON, so that no value can break out of the text it stands in; a value is not
// searched for variables again. Then everything that runs pods is told of its
// cluster, gets its credentials as files, and is fitted to the AddOnDeploymentConfigs
// of the cluster: nodes, images, proxy, resources, namespace.
//
// More than the field does: all kinds that run pods are fitted, with their init
// containers, not only Deployments and DaemonSets; every AddOnDeploymentConfig
// counts, the first one most; tolerations count without a nodeSelector and a CA
// bundle without a proxy; the manifest configurations are those of the template that
// the cluster really has, and follow the namespace.
//
// All of it is pure. Which template and which configurations a cluster has is the
// business of controllers/addon/config; nothing is read or written here.
package template
