// SPDX-License-Identifier: Apache-2.0

// Package grant turns a ClusterPermission into the roles and bindings of its cluster, and
// judges its spec: what can never be sent (Problems), what gives rights beyond those that it
// names (Elevated), and what does not mean what it seems to (Advice).
//
// It is pure. The loop and admission share it, so that both say the same.
package grant
