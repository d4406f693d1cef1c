// SPDX-License-Identifier: Apache-2.0

// Package lease renews the lease by which a cluster sees that an add-on's agent works. It
// is for the agent's side: small enough for a process of a few megabytes, and its only
// request is one patch a minute.
//
// The lease has the name of the add-on and is in the namespace that the agent is installed
// in, in hosted mode on the hosting cluster. The agent's account needs permission to create
// leases there and to patch this one.
//
// Differences from the API's own implementation: a failed renewal is retried after ten
// seconds, so that more than five have to fail in a row before the add-on counts as gone.
package lease
