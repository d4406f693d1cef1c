// SPDX-License-Identifier: Apache-2.0

// Command helloworld-addon is an add-on to learn from, and to start one's own with: it
// copies ConfigMaps from the namespace of a cluster on the hub to that cluster.
// docs/guides/addon.md builds it up from an empty directory.
//
// Install it on the hub, enable it on a cluster, and give that cluster something to copy:
//
//	kubectl apply -f examples/helloworld-addon/deploy.yaml
//	kubectl ocm addon enable helloworld -c cluster1
//	kubectl create configmap greeting -n cluster1 --from-literal=hello=world
//
// One program, three commands:
//
//   - controller runs on the hub. It defines the add-on (controller.go: templates of package
//     manifests, permissions, health by lease), and pkg/addonkit does the rest:
//     ManifestWorks, the agent's certificate and permissions, conditions, deletion.
//   - agent runs on each cluster (agent.go, copies.go). It reads the namespace of its cluster
//     on the hub and nothing else there, writes ConfigMaps with the label synced-from-hub to
//     its own namespace, and renews the lease.
//   - cleanup removes these and the lease (cleanup.go). The Job of manifests/cleanup.yaml runs
//     it before the add-on leaves a cluster; by then the agent no longer copies anything.
//
// An AddOnDeploymentConfig changes namespace, nodes, registries, resources and proxy; the
// annotation addon.open-cluster-management.io/values changes the log level of the agent,
// {"Verbosity":1}.
//
// It leaves alone everything in the agent's namespace that is not its copy.
package main
