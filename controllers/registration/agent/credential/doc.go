// SPDX-License-Identifier: Apache-2.0

// Package credential takes an agent from the bootstrap secret to its own
// access to the hub, and keeps that access fresh.
//
// It reads three Secrets of the agent's namespace, by one watch:
// bootstrap-hub-kubeconfig (somebody else's), hub-kubeconfig-secret and
// hub-kubeconfig-pending (its own). On the hub it creates the ManagedCluster
// once, creates certificate requests, and watches the one request that is
// outstanding by its name.
//
// Name and key of a request are in the pending secret before the request
// exists, so a restart at any point goes on with the same request and there
// is never a second one. A denied request is reported and asked again after a
// growing time that survives restarts. Each pass takes one step; Decide chooses
// it from what the caches show.
//
// The steps write to two clusters and hand private keys on, which a plan of
// pkg/reconcile cannot hold, so the package has its own executor; every write
// is fenced by uid and resourceVersion all the same. While the access is valid
// it keeps a session running (Options.Serve); a renewed certificate is
// exchanged inside the session, another hub or identity starts a new one. When
// the bootstrap secret names another address or authority, the kept certificate
// is shown there first: a hub that only moved knows it, and nobody has to
// approve another one.
//
// It never approves anything and knows nothing of acceptance.
package credential
