// SPDX-License-Identifier: Apache-2.0

// Package request is what all certificate requests of an agent have in common, whether for
// the agent itself or for an add-on: keys and names, the CertificateSigningRequest and its
// creation, the hub's answer and what follows from it, the format of a pending request in a
// secret, and the times of renewals and of retries after a denial.
//
// State is the state machine every certificate goes through: Rest and Request choose the next
// step from what is kept, what is pending and the hub's answer, without side effects.
// Packages credential and addoncredential supply the specifics: who the certificate is for,
// where it is kept, what else must exist, and the messages.
//
// The package stores nothing itself, and on the hub it writes only certificate requests.
package request
