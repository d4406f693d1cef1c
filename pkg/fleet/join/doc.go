// SPDX-License-Identifier: Apache-2.0

// Package join joins a cluster to a hub: it checks both sides, installs the agent and follows
// the registration.
package join
