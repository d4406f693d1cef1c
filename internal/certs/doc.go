// SPDX-License-Identifier: Apache-2.0

// Package certs makes and renews the certificates of the hub's webhooks: one
// authority that signs itself, a bundle of the authorities that are still
// valid, and one serving certificate a Service.
//
// Ensure is a function of what exists and of the time: what is good stays, what
// is missing, worn or wrong is made anew. Book hands the serving certificates to
// a TLS listener by the name that the client asks for. The package reads and
// writes no API objects; controllers/operator/clustermanager keeps what it makes
// in Secrets and a ConfigMap.
package certs
