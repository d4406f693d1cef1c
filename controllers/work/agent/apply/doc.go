// SPDX-License-Identifier: Apache-2.0

// Package apply brings the objects of one ManifestWork to the cluster and keeps
// them there.
//
// A pass gathers the work, its AppliedManifestWork, the decoded manifests and what is
// remembered and seen of their objects. Decide, which is pure, gives each manifest
// one action and lists what has to be removed. Then, in this order:
//
//	the finalizer on the ManifestWork, and the AppliedManifestWork
//	look    reads each object that may have changed
//	note    the record of all objects, before any of them is written
//	settle  says for each manifest, from what was read, what is sent (pure)
//	send    writes, in the order of ranks; removals follow in the opposite order
//	note    the record with the identities that the writes gave
//	the record of which manifests are complete
//	one status write on the hub
//
// Because the record comes first, a pass that ends anywhere leaves nothing behind
// that is not recorded. A pass over a work whose objects are as they were left makes
// no request.
//
// Between passes each manifest stands at one place, and one action follows from it:
//
//	stand     means                                 due                        action
//	fresh     nobody has looked                     at once                    write
//	broken    it names no object                    when the work changes      none
//	unknown   there is no such kind                 when kinds change, retry   none
//	kept      the object is as declared             when the object changes    repair
//	refused   its options forbid to apply it        when the object changes    look
//	blocked   others hold fields, or it is going    object changes, 5 minutes  write
//	denied    the executor may not                  rights change, 1 minute    write
//	failing   the last try failed                   retry, 10 ms to 1 minute   write
//	resting   complete: only its owner is kept      when the object changes    tend
//
//	fresh, kept, blocked, denied, failing --write or repair--> kept      it worked
//	                                                       --> blocked   fields or finalizers of others
//	                                                       --> denied    the executor's rights
//	                                                       --> failing   anything else
//	                                                       --> resting   it went, and was complete
//	any with a condition Complete that is True -----------> resting
//	resting --Complete is no longer True------------------> fresh
//	any --other content, options, executor or rival-------> fresh
//
// An object of which the work wants to be told something is also read whenever its
// resourceVersion changes (the action read): that writes nothing but the status.
// Condition rules that a pass put off because they cost too much together are asked a
// minute later, and values that do not fit in the status are said to be left out.
//
// Where the work has an executor its rights are checked right before each write, and
// the write is sent as the executor (controllers/work/agent/executor).
//
// What a pass left is remembered in little space where there is nothing special
// about it, and its digest stands on the AppliedManifestWork: a process that starts
// again compares it with the work and with what the watches show, and makes no
// request for a work that is as it was left.
//
// Reads and writes: manifestworks, their status and events (hub);
// appliedmanifestworks and what works declare (managed cluster). Works that are being
// deleted are the business of controllers/work/agent/finalize.
package apply
