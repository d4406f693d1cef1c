// SPDX-License-Identifier: Apache-2.0

// Package addon measures how soon an add-on of a template reaches a fleet, how soon
// another configuration does, and what add-ons cost the hub. Its test has the build
// tag perf.
package addon
