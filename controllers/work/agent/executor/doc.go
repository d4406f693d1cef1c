// SPDX-License-Identifier: Apache-2.0

// Package executor makes sure that a ManifestWork with an executor does nothing
// that its ServiceAccount on this cluster may not do.
//
// Two things stand behind that. Before an object is applied, Checker asks by
// SubjectAccessReview for every right that the contract wants: create, update,
// patch and get, and delete where the work owns the object. What is missing is
// named in the condition, with commands that grant it. The write itself is then
// sent as the ServiceAccount (Checker.As), so that the API server enforces its
// rights: nothing can change between the check and the write, and an update that
// widens a role is judged as a whole. Roles and bindings that exist are also
// rehearsed by a create in a dry run, which finds an escalation even where the
// object would not change. Rehearsals are never remembered.
//
// What was allowed stays allowed until rights change, and at rest nothing is
// asked. While some work has an executor, roles and bindings are watched
// (metadata only). An event has the rules of each executor and namespace that it
// can concern compared with those before, by one SelfSubjectRulesReview; only
// where they differ the works are woken and ask anew. That is done again a few
// seconds later, because API servers learn of new rights at different times.
// Where roles may not be watched the comparison is made once a minute. What was
// denied is asked again after a minute, since authorizers other than RBAC have
// no events. The feature gate ExecutorValidatingCaches is accepted and changes
// nothing: the API server checks each write, so that the agent's memory grants
// nothing.
//
// Owner references on objects whose content is left alone, deletions and reads
// are the agent's own. Where the agent itself may not read or delete, as with
// narrow rights, the executor's rights serve instead. An object is only owned by
// a work whose executor could delete it when it was applied, so that it goes
// with the work even if the executor has lost its rights or is gone by then;
// otherwise the work would never end.
//
// Reads and writes: subjectaccessreviews, selfsubjectrulesreviews and metadata of
// roles and bindings on the managed cluster. Other than
// in the API's own agent, writes are sent as the executor, and an existing role is
// checked against what it would become.
package executor
