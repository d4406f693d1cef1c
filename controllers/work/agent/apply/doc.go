// SPDX-License-Identifier: Apache-2.0

// Package apply brings the objects of one ManifestWork to the cluster and keeps them
// there.
//
// A pass gathers the work, its AppliedManifestWork, the decoded manifests, and what is
// remembered and watched of their objects. Decide, which is pure, gives each manifest one
// action and lists what has to be removed. Then, in this order:
//
//	look           reads each object that may have changed; the finalizer on the ManifestWork
//	prepare        the AppliedManifestWork; a new one lists all objects
//	recordObjects  the record of all objects, before any of them is written
//	decideStep     decides for each manifest, from what was read, what to send (pure)
//	send           writes, by rank; removals follow in the opposite order
//	recordWritten  the record with the identities that the writes returned
//	recordComplete the record of which manifests are complete
//	report         one status write on the hub
//
// recordWritten and report run at once, except where the hub must not learn of something
// before it is recorded: of complete manifests, or of a work that replaced another of its name.
//
// Because the record comes first, a pass that ends anywhere leaves nothing behind that is
// not recorded. A pass over a work whose objects are unchanged makes no request.
//
// Between passes each manifest is in one phase, and one action follows from it:
//
//	phase     meaning                               due                        action
//	fresh     not read yet                          at once                    write
//	broken    it names no object                    when the work changes      none
//	unknown   there is no such kind                 when kinds change, retry   none
//	kept      the object is as declared             when the object changes    repair
//	refused   its options forbid applying it        when the object changes    look
//	blocked   others hold fields, or it is deleted  object changes, 5 minutes  write
//	denied    the executor may not                  rights change, 1 minute    write
//	failing   the last try failed                   retry, 10 ms to 1 minute   write
//	resting   complete: only its owner is kept      when the object changes    tend
//
//	fresh, kept, blocked, denied, failing --write or repair--> kept      it worked
//	                                                       --> blocked   others hold fields or finalizers
//	                                                       --> denied    the executor's rights
//	                                                       --> failing   anything else
//	                                                       --> resting   it is gone, and was complete
//	any with a condition Complete that is True -----------> resting
//	resting --Complete is no longer True------------------> fresh
//	any --other content, options, executor or rival-------> fresh
//
// An object with feedback or condition rules is also read whenever its resourceVersion
// changes (the action read), which writes nothing but the status. Condition rules that a
// pass put off because together they cost too much are evaluated a minute later; values
// that do not fit in the status are reported as left out.
//
// Where the work has an executor, its rights are checked right before each write, and the
// write is sent as the executor (controllers/work/agent/executor).
//
// The outcome of a pass is kept in compact form where there is nothing special about it,
// and its digest is stored on the AppliedManifestWork: a process that restarts compares
// it with the work and with what the watches show, and makes no request for a work that
// is unchanged.
//
// Reads and writes: manifestworks, their status and events (hub); appliedmanifestworks
// and the objects that works declare (managed cluster). Works that are being deleted are
// handled by controllers/work/agent/finalize.
package apply
