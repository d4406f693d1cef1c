// SPDX-License-Identifier: Apache-2.0

// Command webdemo is the application of the demo and the end-to-end tests: a web server
// with a single page that shows where it runs.
//
// It reads its environment (CLUSTER_NAME, NODE_NAME, POD_NAME, MESSAGE), all of it
// optional, and serves / and /healthz on port 8080. Everything it shows is escaped; it
// keeps no state, reads no request body and needs no permissions in any cluster.
// manifests.yaml deploys it.
//
// It is an example of something to deploy, not of how to write a controller.
package main
