// SPDX-License-Identifier: Apache-2.0

// Package drift watches the objects that works declare, and wakes works whose objects
// have changed.
//
// There is one metadata-only watch for each resource and namespace in use, or one for the
// whole cluster where a resource is in use in more than eight namespaces. Objects that
// belong to no work are dropped as they arrive. Where list or watch is not allowed, the
// works concerned are woken once a minute to read their objects with a GET, and
// Config.OnBlind is called once for each resource.
//
// While some work declares a kind that does not exist, CustomResourceDefinitions are
// watched as well, so that the work is applied as soon as the definition exists.
//
// A Tracker neither reads nor writes objects; it wakes works, and a pass asks it through
// Look what it has seen.
package drift
