// SPDX-License-Identifier: Apache-2.0

// Package credential takes an agent from the bootstrap secret to its own access to the hub,
// and keeps that access valid.
//
// It reads three Secrets in the agent's namespace, through one watch:
// bootstrap-hub-kubeconfig (written by others), hub-kubeconfig-secret and
// hub-kubeconfig-pending (its own). On the hub it creates the ManagedCluster once, creates
// certificate requests, and watches the one outstanding request by name.
//
// The name and key of a request are in the pending secret before the request exists, so a
// restart at any point continues with the same request and there is never a second one. A
// denied request is reported and retried after a growing delay that survives restarts. Each
// pass takes one step; Decide chooses it from what the caches show.
//
// The steps write to two clusters and pass private keys on, which a plan of pkg/reconcile
// cannot hold, so the package has its own executor; every write is still fenced by uid and
// resourceVersion. While the access is valid it keeps a session running (Config.Serve); a
// renewed certificate is swapped in within the session, while another hub or identity starts
// a new one. When the bootstrap secret names another address or certificate authority, the
// stored certificate is tried there first: a hub that only moved knows it, and no new
// approval is needed.
//
// The package never approves anything and does not deal with acceptance.
package credential
