// SPDX-License-Identifier: Apache-2.0

// Package agents runs the agent of a Klusterlet as Deployments: of each Klusterlet of this cluster
// that no process serves in itself, whoever created it.
//
// "ocm-agent operator" runs the loop alone; an agent of the modes Default and Hosted is then two
// Deployments, one that registers the cluster and one that applies works. "ocm-agent run" runs it
// beside the Klusterlet that it serves itself, and makes one Deployment of every agent. Of several
// such processes on one cluster only one does: none beside an operator, else the one that serves
// the default Klusterlet, else the first by name.
//
// Whether a Klusterlet has a process of its own is seen from what is there: a Deployment whose
// container runs "ocm-agent run" for it, or a lease that such a process renews. Everything of
// that Klusterlet is left alone.
//
// The loop reads the Klusterlets and, while there is one to serve, everything with their labels
// and Secrets by name. It writes what makes a cluster a managed one: definitions and the namespace
// of add-ons (package shared), the namespace, ServiceAccounts and rights of the agent
// (config/agent/manifests), copies of the image pull secret and of an operator's ConfigMap
// ocm-tls-profile, an operator's NetworkPolicies if the gate of that name is on, the Deployments;
// and the Klusterlet's conditions. What others change is put back at once. After a change of the namespace the agent's
// secrets move with it, and what the agent ran as before is removed once the new one is available.
//
// A hosted agent runs in the namespace with the name of its Klusterlet and manages another cluster.
// What makes that a managed one is applied there, with the kubeconfig of an administrator, and put
// back there too. The agent gets tokens of its own accounts on that cluster, which are replaced in
// time. While the cluster is out of reach, ReadyToApply says so and nothing changes.
//
// When a Klusterlet is deleted, its processes end first, then pkg/fleet/teardown removes the rest;
// what works applied stays. A hosted agent is removed from its managed cluster first, or not at all
// if that cluster has been out of reach for too long.
package agents
