// SPDX-License-Identifier: Apache-2.0

// Package await waits until objects of an API server are as somebody wants them.
// It lists once, then watches from there; a watch that ends is resumed, and one
// that is too old begins with a new list, so that a server's time-outs and
// restarts are not noticed by the caller. What is judged is always the whole
// current set, never a single event.
//
// It writes nothing. The deadline is that of the context. It is no cache: a
// controller reads from pkg/reconcile/watch or internal/manager instead.
package await
