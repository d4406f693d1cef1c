// SPDX-License-Identifier: Apache-2.0

// Command helloworld-addon is an add-on to learn from, and to begin one's own with: it
// copies ConfigMaps that lie in the namespace of a cluster on the hub to that cluster.
// docs/guides/addon.md builds it up from an empty folder.
//
// Install it on the hub, bring it to a cluster, and give that cluster something:
//
//	kubectl apply -f examples/helloworld-addon/deploy.yaml
//	kubectl ocm addon enable helloworld -c cluster1
//	kubectl create configmap greeting -n cluster1 --from-literal=hello=world
//
// One program, three commands:
//
//   - controller runs on the hub. It says what the add-on is (controller.go: templates
//     of package manifests, rights, health by lease), and pkg/addonkit does the rest:
//     ManifestWorks, the certificate of the agent, its rights, conditions, deletion.
//   - agent runs on each cluster (agent.go, copies.go). It reads the namespace of its
//     cluster on the hub and nothing else there, writes ConfigMaps with the label
//     synced-from-hub to its own namespace, and renews the lease.
//   - cleanup removes these and the lease (cleanup.go). The Job of manifests/cleanup.yaml runs it
//     before the add-on leaves a cluster; the agent copies nothing any more then.
//
// An AddOnDeploymentConfig changes namespace, nodes, registries, resources and proxy;
// the annotation addon.open-cluster-management.io/values the level of the agent's log,
// {"Verbosity":1}.
//
// What lies in the namespace of the agent and is not its copy, it leaves alone.
package main
