// SPDX-License-Identifier: Apache-2.0

// Package manifests holds the YAML files of an agent, which kustomize installs as they are, and
// adapts the rights in them to one Klusterlet. config/agent makes an installation of them, and
// controllers/operator/agents the agents that it runs as Deployments. The package links no Go
// types of workloads, because an agent's process uses it too.
package manifests
