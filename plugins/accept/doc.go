// SPDX-License-Identifier: Apache-2.0

// Package accept is the command "accept": it accepts or denies clusters that asked
// to join, or lists their requests. pkg/fleet/accept does the checks and the work.
package accept
