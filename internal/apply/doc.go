// SPDX-License-Identifier: Apache-2.0

// Package apply writes other people's objects to a cluster on behalf of
// ManifestWorks, and removes them again.
//
// An Applier creates and updates one object by one of four strategies, sees to
// its owner references, and deletes with preconditions. It never writes without
// a look at what is there, and each write holds only for what was looked at.
//
//	Update           server-side apply, force, manager work-agent
//	ServerSideApply  the same with the work's own manager and force flag
//	                 and, where it has some, its ignored fields (package ignore)
//	CreateOnly       creates what is missing, then only its owner reference
//	ReadOnly         writes nothing
//
// As makes an Applier that writes as somebody else, the executor of a work:
// contents are written with that client, everything else as ourselves.
//
// Ownership is a reference from the object to the AppliedManifestWork that
// stands for the work on this cluster. Several works may own one object; it
// goes with the last of them.
//
// Seen is what is remembered of an object: identity, version, and a digest of
// the fields that our manager owns. Because every writer who changes such a
// field takes it over, an unchanged digest in a metadata-only watch event
// proves that the object is as it was left, without a request. Drifted compares
// two of them.
//
// Which object belongs to which work, what is recorded before a write, and what
// stands in conditions is decided in controllers/work/agent.
package apply
