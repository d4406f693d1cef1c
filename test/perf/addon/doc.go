// SPDX-License-Identifier: Apache-2.0

// Package addon measures how soon an add-on from a template and a changed configuration
// reach a fleet, what add-ons cost the hub, and how many status writes one takes. Its tests
// have the build tag perf.
package addon
