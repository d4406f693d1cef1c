// SPDX-License-Identifier: Apache-2.0

// Package complete provides shell completion for contexts, clusters, sets, works and
// other names. Users do not wait long for a completion, so names that the API server does
// not return within 300 milliseconds are not offered.
package complete
