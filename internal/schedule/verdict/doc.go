// SPDX-License-Identifier: Apache-2.0

// Package verdict is the form in which a schedule.Report is handed out: by
// "kubectl ocm placement explain -o json", by the checks of placements, and by
// the hub's debug endpoint. All of them say the same of the same fleet, under
// the same names. Texts in it may quote labels, claims and expressions.
//
// It is pure, and knows neither a cluster nor a terminal.
package verdict
