// SPDX-License-Identifier: Apache-2.0

//go:build race

package agent_test

// raceFlags build the agent with the race detector.
var raceFlags, cgo = []string{"-race"}, "CGO_ENABLED=1"
