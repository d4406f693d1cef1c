// SPDX-License-Identifier: Apache-2.0

// Package request is what every certificate request of an agent has in common,
// be it for the agent itself or for an add-on: keys and names, the
// CertificateSigningRequest of the API and its creation, what the hub answers to
// it and what follows from that, the form in which a secret holds what is
// pending, and the times of renewals and of attempts after a denial.
//
// State is the machine that every certificate goes through: Rest and Request
// choose the next step from what is kept, what is pending and what the hub
// answers, without an effect. Packages credential and addoncredential put their
// own into it: who the certificate is for, where it is kept, what else has to be
// there, and the words for it.
//
// It keeps nothing, and of the hub it writes requests only.
package request
