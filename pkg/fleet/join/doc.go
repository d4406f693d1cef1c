// SPDX-License-Identifier: Apache-2.0

// Package join makes a cluster one of a hub: it checks both sides, installs the
// agent and follows the registration.
package join
