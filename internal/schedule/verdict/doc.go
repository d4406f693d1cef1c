// SPDX-License-Identifier: Apache-2.0

// Package verdict defines the output form of a schedule.Report, which "kubectl ocm
// placement explain -o json", the checks of placements and the hub's debug endpoint
// share: all of them report the same for the same fleet, under the same names. Texts in
// it may quote labels, claims and expressions.
//
// It is pure: it uses neither a cluster nor a terminal.
package verdict
