// SPDX-License-Identifier: Apache-2.0

// Package executor makes sure that a ManifestWork with an executor does nothing that its
// ServiceAccount may not do on this cluster.
//
// Two mechanisms enforce this. Before an object is applied, Checker asks by
// SubjectAccessReview for every right that the contract requires: create, update, patch
// and get, plus delete where the work owns the object. The condition names the missing
// rights, with commands that grant them. The write itself is then sent as the
// ServiceAccount (Checker.As), so that the API server enforces its rights: nothing can
// change between the check and the write, and an update that widens a role is checked as
// a whole. Existing roles and bindings are also rehearsed by a dry-run create, which
// finds an escalation even where the object would not change. Rehearsals are never
// cached.
//
// What was allowed stays allowed until rights change, and at rest no requests are sent.
// While any work has an executor, roles and bindings are watched (metadata only). After
// an event, the rules of each executor and namespace that it can concern are compared
// with the earlier ones, by one SelfSubjectRulesReview; works are woken and ask again
// only where the rules differ. The comparison is repeated a few seconds later, because
// API servers learn of new rights at different times. Where roles may not be watched,
// rules are compared once a minute. What was denied is asked again after a minute, since
// authorizers other than RBAC send no events. The feature gate ExecutorValidatingCaches
// is accepted and changes nothing: the API server checks each write, so the agent's
// memory grants nothing.
//
// The agent uses its own rights for owner references on objects whose content is left
// alone, for deletions and for reads. Where the agent itself may not read or delete, as
// with narrow rights, it uses the executor's rights instead. A work owns an object only
// if its executor could delete the object when it was applied, so that the object is
// deleted with the work even if the executor has lost its rights or is gone by then;
// otherwise the work would never finish.
//
// Reads and writes: subjectaccessreviews, selfsubjectrulesreviews and metadata of roles
// and bindings on the managed cluster. Unlike in the API's own agent, writes are sent as
// the executor, and an existing role is checked against what it would become.
package executor
