// SPDX-License-Identifier: Apache-2.0

// Package await waits until objects of an API server reach a wanted state. It lists once and
// watches from there; a watch that ends is resumed, and one whose resource version is too old
// starts over with a new list, so that callers do not notice time-outs and restarts of a
// server. The predicate always sees the whole current set, never a single event.
//
// It writes nothing. The deadline is that of the context. It is not a cache: a controller
// reads from pkg/reconcile/watch or internal/manager instead.
package await
