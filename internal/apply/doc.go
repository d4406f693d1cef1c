// SPDX-License-Identifier: Apache-2.0

// Package apply writes objects to a cluster on behalf of ManifestWorks, and removes them
// again.
//
// An Applier creates and updates one object by one of four strategies, maintains its
// owner references, and deletes with preconditions. It never writes without reading the
// live object first, and each write is conditional on the state that was read.
//
//	Update           server-side apply, force, manager work-agent
//	ServerSideApply  the same with the work's own manager and force flag
//	                 and, where it has some, its ignored fields (package ignore)
//	CreateOnly       creates what is missing, then only its owner reference
//	ReadOnly         writes nothing
//
// As returns an Applier that acts for the executor of a work: it writes contents with the
// executor's client, and everything else as the agent itself.
//
// Ownership is a reference from the object to the AppliedManifestWork that represents the
// work on this cluster. Several works may own one object; it is deleted with the last of
// them.
//
// Seen is what is remembered of an object: identity, version, and a digest of the fields
// that our manager owns. Every writer that changes such a field takes it over, so an
// unchanged digest in a metadata-only watch event proves, without a request, that the
// object is as it was left. Drifted compares two of them.
//
// Which object belongs to which work, what is recorded before a write, and what
// conditions report is decided in controllers/work/agent.
package apply
