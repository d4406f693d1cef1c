// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
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
	told *fleet.Error
}

// Error names what was not found.
func (a *absent) Error() string { return a.name + " " + ErrNotFound.Error() }

// Is tells that this is ErrNotFound.
func (a *absent) Is(target error) bool { return target == ErrNotFound }

// What helps with a name that nothing has: a list of what there is.
const (
	ListClusters   fleet.RemedyCode = "naming.ListClusters"
	ListSets       fleet.RemedyCode = "naming.ListSets"
	ListBindings   fleet.RemedyCode = "naming.ListBindings"
	ListPlacements fleet.RemedyCode = "naming.ListPlacements"
	ListAddOns     fleet.RemedyCode = "naming.ListAddOns"
	ListWorks      fleet.RemedyCode = "naming.ListWorks"
	ListWorkSets   fleet.RemedyCode = "naming.ListWorkSets"
	ListTokens     fleet.RemedyCode = "naming.ListTokens"
)

// nothing makes the error about a name that nothing has; list is what shows what
// there is.
func nothing(message, name string, list fleet.Fix, have func(context.Context) ([]string, error)) *fleet.Error {
	e := &fleet.Error{Message: message, Fix: list}
	e.Err = &absent{name: name, have: have, told: e}
	return e
}

// NoCluster is the error for a name that no managed cluster has.
func NoCluster(name string, hub *fleet.Cluster) *fleet.Error {
	return nothing(fmt.Sprintf("there is no managed cluster %q on %s", name, hub), name, ListClusters.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ManagedClusters}))
}

// Deniable returns those of the names that a cluster has which is on the hub or has
// asked to be; the error is about the first that none has.
func Deniable(ctx context.Context, hub *fleet.Cluster, names []string) ([]string, error) {
	if err := fleet.NeedHub(ctx, hub); err != nil {
		return nil, err
	}
	there, err := Clusters(ctx, hub)
	if err != nil {
		return nil, fleet.Explain("listing managedclusters", hub, err)
	}
	asking, err := Pending(ctx, hub)
	if err != nil {
		return nil, fleet.Explain("listing certificate requests", hub, err)
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
func NoSet(name string, hub *fleet.Cluster) *fleet.Error {
	return nothing(fmt.Sprintf("there is no cluster set %q on %s", name, hub), name, ListSets.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ManagedClusterSets}))
}

// NoBinding is the error for a set that a namespace is not bound to.
func NoBinding(namespace, set string, hub *fleet.Cluster) *fleet.Error {
	return nothing(fmt.Sprintf("namespace %q is not bound to the cluster set %q on %s", namespace, set, hub), namespace+"/"+set,
		ListBindings.On(hub), namesOf(hub, fleet.Query{Resource: fleet.SetBindings}))
}

// NoPlacement is the error for a NAMESPACE/NAME that no placement has; the name alone
// may be in any namespace.
func NoPlacement(name string, hub *fleet.Cluster) *fleet.Error {
	return nothing(fmt.Sprintf("there is no placement %s on %s", name, hub), name, ListPlacements.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.Placements}))
}

// NoAddOn is the error for a name that no add-on has.
func NoAddOn(name string, hub *fleet.Cluster) *fleet.Error {
	return nothing(fmt.Sprintf("there is no add-on %q on %s", name, hub), name, ListAddOns.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ManagementAddOns}))
}

// NoWork is the error for a name that no work has in a place, which reads "on cluster1".
func NoWork(name, place string, hub *fleet.Cluster) *fleet.Error {
	return nothing(fmt.Sprintf("there is no work %q %s", name, place), name, ListWorks.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ManifestWorks}, fleet.Query{Resource: fleet.ReplicaSets}))
}

// NoWorkSet is the error for a name that no set of works has.
func NoWorkSet(name string, hub *fleet.Cluster) *fleet.Error {
	return nothing(fmt.Sprintf("there is no set of works %q on %s", name, hub), name, ListWorkSets.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ReplicaSets}))
}

// NoToken is the error for an id that no join token has.
func NoToken(id string, hub *fleet.Cluster) *fleet.Error {
	return nothing(fmt.Sprintf("there is no token %q on %s", id, hub), id, ListTokens.On(hub),
		func(ctx context.Context) ([]string, error) { return Tokens(ctx, hub) })
}

// namesOf lists the names of objects of some kinds.
func namesOf(c *fleet.Cluster, kinds ...fleet.Query) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var out []string
		for _, q := range kinds {
			items, err := fleet.ListAll(ctx, c, q)
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
		return "there is " + fleet.Listed(there)
	}
	if found := Nearest(base, near); found != "" {
		return fmt.Sprintf("did you mean %q?", found)
	}
	return ""
}
