// SPDX-License-Identifier: Apache-2.0

// Package clusterset is the command "clusterset": the sets that clusters are put
// into, and the namespaces that may use them. What is done, and what is refused
// because somebody would lose clusters by it, is decided in pkg/fleet.
package clusterset
