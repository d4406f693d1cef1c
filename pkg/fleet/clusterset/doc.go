// SPDX-License-Identifier: Apache-2.0

// Package clusterset lists and changes cluster sets, their members and the namespaces that
// they are bound to.
package clusterset
