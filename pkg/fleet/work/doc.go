// SPDX-License-Identifier: Apache-2.0

// Package work sends objects to clusters as ManifestWorks, and tells what
// became of them.
package work
