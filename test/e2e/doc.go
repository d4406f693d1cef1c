// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the whole of the project as a person meets it: clusters
// with real nodes, our images in them, and the plugin's binary run from
// outside. It asserts what can be seen by kubectl and by the plugin's output,
// never what a process keeps to itself.
//
// The suite carries the build tag e2e and needs what test/harness/nodes needs:
// Linux, root and containerd. "make e2e" runs it. It compiles images and the
// plugin from the tree that it lies in, and leaves nothing on the machine.
package e2e
