// SPDX-License-Identifier: Apache-2.0

// Package release tests that what "make release" builds can be installed: it runs
// tools/release for this machine's platform, unpacks the archive by the rules of krew,
// and calls the plugin through a real kubectl.
//
// It needs the kubectl that test/kubernetes builds, and no cluster. The
// manifest's own rules are tested in tools/release.
package release
