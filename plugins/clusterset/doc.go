// SPDX-License-Identifier: Apache-2.0

// Package clusterset is the command "clusterset": it manages cluster sets, their
// members, and the namespaces that may use them. pkg/fleet makes the changes, and
// refuses those by which a placement would lose clusters.
package clusterset
