// SPDX-License-Identifier: Apache-2.0

// Package work sends objects to clusters as ManifestWorks, and reports their state.
package work
