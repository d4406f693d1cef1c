// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the whole project as users see it: clusters with real nodes, the
// project's images on them, and the plugin's binary run from outside. It asserts only
// what kubectl and the plugin's output show, never the internals of a process.
//
// The suite carries the build tag e2e and needs what test/harness/nodes and
// test/harness/browser need: Linux, root, containerd and chromium. "make e2e" runs it. It
// builds the images and the plugin from its own source tree, and leaves nothing on the
// machine but pictures of the report's page in bin/pictures.
package e2e
