// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount runs the agent of the add-on managed-serviceaccount between two
// real clusters, with the hub's loops beside it. Everything has exactly the rights of the
// installed manifests, and the agent those that the hub gives it.
package serviceaccount
