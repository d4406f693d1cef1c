// SPDX-License-Identifier: Apache-2.0

// Package addon measures how soon an add-on from a template and a changed configuration
// reach a fleet, and what add-ons cost the hub. Its test has the build tag perf.
package addon
