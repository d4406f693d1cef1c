// SPDX-License-Identifier: Apache-2.0

// Package lease keeps the lease by which a cluster sees that the agent of an add-on
// works. It is for the agent's side: small enough for a process of a few megabytes,
// and its only request is one patch a minute.
//
// The lease is named as the add-on and lies in the namespace that the agent is
// installed in; in hosted mode on the hosting cluster. The account of the agent needs
// the rights to create leases there, and to patch this one.
//
// Other than in the API's own implementation: a renewal that fails is tried again
// after ten seconds, so that five have to fail in a row, and more, before the
// add-on counts as gone.
package lease
