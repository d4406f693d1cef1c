// SPDX-License-Identifier: Apache-2.0

// Package check looks for what keeps a fleet from working. It reads what the
// other packages write, changes nothing, and names each cause with its fix.
package check
