// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrNotFound is in every error about a name that nothing has.
var ErrNotFound = errors.New("not found")

// absent is in the error about a name that nothing has, and knows where to look for
// names that may be meant.
type absent struct {
	name string
	// have lists the names that there are, as NAMESPACE/NAME for kinds that live in a
	// namespace.
	have func(context.Context) ([]string, error)
	// told is the error for the person.
	told *Error
}

// Error names what was not found.
func (a *absent) Error() string { return a.name + " " + ErrNotFound.Error() }

// Is tells that this is ErrNotFound.
func (a *absent) Is(target error) bool { return target == ErrNotFound }

// nothing makes the error about a name that nothing has; list is the command that
// shows what there is.
func nothing(message, name, list string, have func(context.Context) ([]string, error)) *Error {
	e := &Error{Message: message, Fix: list}
	e.Err = &absent{name: name, have: have, told: e}
	return e
}

// NoCluster is the error for a name that no managed cluster has.
func NoCluster(name string, hub *Cluster) *Error {
	return nothing(fmt.Sprintf("there is no managed cluster %q on %s", name, hub), name, "kubectl ocm cluster list"+hub.flag(), namesOf(hub, query{resource: managedClusters}))
}

// Deniable returns those of the names that a cluster has which is on the hub or has
// asked to be; the error is about the first that none has.
func Deniable(ctx context.Context, hub *Cluster, names []string) ([]string, error) {
	if err := needHub(ctx, hub); err != nil {
		return nil, err
	}
	there, err := ClusterNames(ctx, hub)
	if err != nil {
		return nil, explain("listing managedclusters", hub, err)
	}
	asking, err := PendingNames(ctx, hub)
	if err != nil {
		return nil, explain("listing certificate requests", hub, err)
	}
	var out []string
	for _, name := range names {
		switch {
		case slices.Contains(there, name), slices.Contains(asking, name):
			out = append(out, name)
		case err == nil:
			err = NoCluster(name, hub)
		}
	}
	return out, err
}

// NoSet is the error for a name that no cluster set has.
func NoSet(name string, hub *Cluster) *Error {
	return nothing(fmt.Sprintf("there is no cluster set %q on %s", name, hub), name, "kubectl ocm clusterset list"+hub.flag(), namesOf(hub, query{resource: managedClusterSets}))
}

// NoBinding is the error for a set that a namespace is not bound to.
func NoBinding(namespace, set string, hub *Cluster) *Error {
	return nothing(fmt.Sprintf("namespace %q is not bound to the cluster set %q on %s", namespace, set, hub), namespace+"/"+set,
		"kubectl ocm clusterset list -o wide"+hub.flag(), namesOf(hub, query{resource: setBindings}))
}

// NoPlacement is the error for a NAMESPACE/NAME that no placement has; the name alone
// may be in any namespace.
func NoPlacement(name string, hub *Cluster) *Error {
	return nothing(fmt.Sprintf("there is no placement %s on %s", name, hub), name, "kubectl ocm placement list -A"+hub.flag(), namesOf(hub, query{resource: placements}))
}

// NoAddOn is the error for a name that no add-on has.
func NoAddOn(name string, hub *Cluster) *Error {
	return nothing(fmt.Sprintf("there is no add-on %q on %s", name, hub), name, "kubectl ocm addon list"+hub.flag(), namesOf(hub, query{resource: managementAddOns}))
}

// NoWork is the error for a name that no work has in a place, which reads "on cluster1".
func NoWork(name, place string, hub *Cluster) *Error {
	return nothing(fmt.Sprintf("there is no work %q %s", name, place), name, "kubectl ocm work list"+hub.flag(), namesOf(hub, query{resource: manifestWorks}, query{resource: replicaSets}))
}

// NoWorkSet is the error for a name that no set of works has.
func NoWorkSet(name string, hub *Cluster) *Error {
	return nothing(fmt.Sprintf("there is no set of works %q on %s", name, hub), name, "kubectl ocm work list --sets"+hub.flag(), namesOf(hub, query{resource: replicaSets}))
}

// noToken is the error for an id that no join token has.
func noToken(id string, hub *Cluster) *Error {
	return nothing(fmt.Sprintf("there is no token %q on %s", id, hub), id, "kubectl ocm hub token list"+hub.flag(),
		func(ctx context.Context) ([]string, error) { return TokenIDs(ctx, hub) })
}

// namesOf lists the names of objects of some kinds.
func namesOf(c *Cluster, kinds ...query) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var out []string
		for _, q := range kinds {
			items, err := listAll(ctx, c, q)
			if err != nil {
				return nil, err
			}
			for i := range items {
				out = append(out, strings.TrimPrefix(items[i].GetNamespace()+"/"+items[i].GetName(), "/"))
			}
		}
		slices.Sort(out)
		return out, nil
	}
}

// suggestTimeout bounds the search for a name that may be meant.
const suggestTimeout = 2 * time.Second

// Suggest adds to an error about a name that nothing has which name may be meant, or
// where something has that name. It asks the server once more and keeps failures of
// that to itself.
func Suggest(ctx context.Context, err error) {
	var a *absent
	if !errors.As(err, &a) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	names, err := a.have(ctx)
	if hint := meant(a.name, names); err == nil && hint != "" {
		a.told.Cause = strings.TrimPrefix(a.told.Cause+"; "+hint, "; ")
	}
}

// meant is the hint about a name that nothing has. Names may have a namespace before
// them.
func meant(name string, names []string) string {
	namespace, base, ok := strings.Cut(name, "/")
	if !ok {
		namespace, base = "", name
	}
	var near, there []string
	for _, have := range names {
		within, other, ok := strings.Cut(have, "/")
		if !ok {
			within, other = "", have
		}
		if other == base {
			there = append(there, have)
		}
		if namespace == "" || within == namespace {
			near = append(near, other)
		}
	}
	if len(there) > 0 {
		return "there is " + listed(there)
	}
	if found := Nearest(base, near); found != "" {
		return fmt.Sprintf("did you mean %q?", found)
	}
	return ""
}

// Nearest returns the name that differs least from word, or "" when none is near
// enough to be meant.
func Nearest(word string, names []string) string {
	best, bestDistance := "", len(word)/2+1
	for _, name := range names {
		if len(word) > 2 && strings.HasPrefix(name, word) {
			return name
		}
		if d := distance(word, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// distance is the number of single-character edits between a and b; two neighbours that
// are exchanged are one.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
