// SPDX-License-Identifier: Apache-2.0

// Package adopt moves a hub that the operator of another distribution of this API runs over to
// our hub process, and back. Clusters, works and add-ons, the identities of agents, the API
// server and its CA are not touched either way.
//
// Before the first write, one ConfigMap records everything that will be replaced or removed,
// without Secrets. The order is chosen so that never two programs decide at once and admission
// is answered all the time: the other operator ends; our process is installed and waits; the
// other controllers end, and our process takes over; only then does the other admission end.
// Both ways can be repeated after any failure and continue where they stopped.
package adopt
