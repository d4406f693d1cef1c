// SPDX-License-Identifier: Apache-2.0

// Package setbinding reports on every ManagedClusterSetBinding whether its set exists.
//
// It owns the condition Bound of bindings in all namespaces, in whichever version they were
// created. A set that is being deleted counts until it is gone, and the message says that it
// is being deleted. A binding whose name is not that of its set, which admission rejects,
// binds nothing, and the condition says how to fix it. A binding that is being deleted is
// left alone.
//
// It reads bindings and sets from the cache and writes the status of bindings.
package setbinding
