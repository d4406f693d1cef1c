// SPDX-License-Identifier: Apache-2.0

// Package request is what every certificate request of an agent has in common,
// be it for the agent itself or for an add-on: keys and names, the
// CertificateSigningRequest of the API and its creation, what the hub answers to
// it and what follows from that, the form in which a secret holds what is
// pending, and the times of renewals and of attempts after a denial.
//
// It keeps nothing, and of the hub it writes requests only; packages credential
// and addoncredential decide what is asked for and where answers are kept.
// Contract: registration.md 3.4 and 11.
package request
