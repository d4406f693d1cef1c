// SPDX-License-Identifier: Apache-2.0

// Package health decides the condition Available of an add-on whose health is not reported
// by its lease but by the ManifestWorks of its cluster, and which values these works must
// report. It is pure.
//
// Differences from the API's own implementation: an add-on is available only when every
// probed object has answered, not just one; the message names what is missing.
package health
