// SPDX-License-Identifier: Apache-2.0

// Package completion is the command "completion": scripts for four shells, and the
// link kubectl_complete-ocm, through which kubectl completes a plugin's command line.
// The link points to kubectl-ocm beside it, so that it survives an upgrade.
package completion
