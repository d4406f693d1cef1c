// SPDX-License-Identifier: Apache-2.0

//go:build !race

package agent_test

// raceFlags build the agent as it is released.
var raceFlags, cgo = []string(nil), "CGO_ENABLED=0"
