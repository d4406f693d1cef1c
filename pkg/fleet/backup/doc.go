// SPDX-License-Identifier: Apache-2.0

// Package backup saves a hub to a file, and restores it on another API server without any object
// of a managed cluster being deleted or created again.
//
// The file has one JSON object a line: a Header, the objects in the order in which they are
// restored, and a Footer with their number and a checksum. Objects are read in pages and written
// at once, so that memory is bounded for fleets of any size. What the hub or agents make again by
// themselves is left out, and so are Secrets, except those named.
//
// Three things keep a hub that is half restored from doing harm, even if the restore ends early.
// Clusters are created unaccepted, and accepted last: an agent has no rights before its works are
// there. Placements are created with their decisions, and frozen: what they select is evaluated
// again only when the clusters have returned. An object whose owner is restored later gets it when
// that is there; owners that are not restored are dropped, because the garbage collector would
// delete the object.
//
// A restore can be repeated: what exists is kept as it is.
package backup
