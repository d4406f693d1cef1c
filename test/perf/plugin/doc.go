// SPDX-License-Identifier: Apache-2.0

// Package plugin measures how long the plugin takes to start, and compares that with the
// budget in test/perf/plugin.yaml. It is built with the tag perf, because its figure
// means nothing while other tests use the machine:
//
//	go test -tags perf -v ./test/perf/plugin
package plugin
