// SPDX-License-Identifier: Apache-2.0

// Package drift watches the objects that works declare, and says when one of
// them is not as it was left.
//
// There is one metadata-only watch for each resource and namespace in use, one
// for the whole cluster where a resource is in use in more than eight
// namespaces. Objects that belong to no work are dropped as they arrive. Where
// list or watch is not allowed, the works concerned are woken once a minute to
// look with a GET, and Config.OnBlind is called once for each resource.
//
// While some work declares a kind that does not exist, definitions are watched
// as well, so that it is applied as soon as the definition is there.
//
// A Tracker neither reads nor writes objects; it wakes works, and a pass asks it
// with Look what it has seen.
package drift
