// SPDX-License-Identifier: Apache-2.0

// Package completion is the command "completion": scripts for four shells, and
// the link kubectl_complete-ocm by which kubectl completes the words of a
// plugin. The link points to the link kubectl-ocm beside it, so that it stays
// right when the plugin is upgraded.
package completion
