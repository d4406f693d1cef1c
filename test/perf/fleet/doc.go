// SPDX-License-Identifier: Apache-2.0

// Package fleet measures a small fleet, installed with the plugin as a user would, and
// compares the results with the budgets of test/perf/fleet.yaml. It is built with the tag
// perf, because its figures mean nothing while other tests use the machine:
//
//	go test -tags perf -v ./test/perf/fleet
package fleet
