// SPDX-License-Identifier: Apache-2.0

// Package write sends objects to a cluster: server-side apply and merge patches with field
// manager kubectl-ocm, in a dry run without storing anything. It returns for each object what
// changed, and hides the values of secrets.
package write
