// SPDX-License-Identifier: Apache-2.0

// Package certs creates and renews the certificates of the hub's webhooks: one
// self-signed authority, a bundle of the authorities that are still valid, and one
// serving certificate for each Service.
//
// Ensure is a function of what exists and of the time: it keeps what is good, and
// replaces what is missing, due for rotation or wrong. Book gives the serving
// certificates to a TLS listener by the server name that the client asks for. The package
// reads and writes no API objects; controllers/operator/clustermanager stores its results
// in Secrets and a ConfigMap.
package certs
