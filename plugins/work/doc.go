// SPDX-License-Identifier: Apache-2.0

// Package work is the command "work": sending objects to managed clusters, by
// works or sets of works, comparing, listing and waiting for what was sent,
// tracing objects of clusters back to it, taking it back. Files are read by options;
// they are judged, kustomizations built and works written by pkg/fleet.
package work
