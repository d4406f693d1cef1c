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

// ErrNotFound is wrapped by every error about a name that does not exist.
var ErrNotFound = errors.New("not found")

// absent is wrapped by the error about a name that does not exist, and knows where to find
// similar names.
type absent struct {
	name string
	// have lists the existing names, as NAMESPACE/NAME for namespaced kinds.
	have func(context.Context) ([]string, error)
	// shown is the error for the user.
	shown *fleet.Error
}

// Error names what was not found.
func (a *absent) Error() string { return a.name + " " + ErrNotFound.Error() }

// Is reports whether target is ErrNotFound.
func (a *absent) Is(target error) bool { return target == ErrNotFound }

// Remedies for a name that does not exist: a list of what exists.
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

// newAbsentError returns the error about a name that does not exist; list is the fix that shows what
// exists.
func newAbsentError(message, name string, list fleet.Fix, have func(context.Context) ([]string, error)) *fleet.Error {
	e := &fleet.Error{Message: message, Fix: list}
	e.Err = &absent{name: name, have: have, shown: e}
	return e
}

// NoCluster is the error for a managed cluster that does not exist.
func NoCluster(name string, hub *fleet.Cluster) *fleet.Error {
	return newAbsentError(fmt.Sprintf("there is no managed cluster %q on %s", name, hub), name, ListClusters.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ManagedClusters}))
}

// Deniable returns the names whose clusters are on the hub or have asked to join; the error is
// about the first other one.
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

// NoSet is the error for a cluster set that does not exist.
func NoSet(name string, hub *fleet.Cluster) *fleet.Error {
	return newAbsentError(fmt.Sprintf("there is no cluster set %q on %s", name, hub), name, ListSets.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ManagedClusterSets}))
}

// NoBinding is the error for a set that is not bound to a namespace.
func NoBinding(namespace, set string, hub *fleet.Cluster) *fleet.Error {
	return newAbsentError(fmt.Sprintf("namespace %q is not bound to the cluster set %q on %s", namespace, set, hub), namespace+"/"+set,
		ListBindings.On(hub), namesOf(hub, fleet.Query{Resource: fleet.SetBindings}))
}

// NoPlacement is the error for a placement NAMESPACE/NAME that does not exist; another
// namespace may have one with the name.
func NoPlacement(name string, hub *fleet.Cluster) *fleet.Error {
	return newAbsentError(fmt.Sprintf("there is no placement %s on %s", name, hub), name, ListPlacements.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.Placements}))
}

// NoAddOn is the error for an add-on that does not exist.
func NoAddOn(name string, hub *fleet.Cluster) *fleet.Error {
	return newAbsentError(fmt.Sprintf("there is no add-on %q on %s", name, hub), name, ListAddOns.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ManagementAddOns}))
}

// NoWork is the error for a work that does not exist in place, which reads "on cluster1".
func NoWork(name, place string, hub *fleet.Cluster) *fleet.Error {
	return newAbsentError(fmt.Sprintf("there is no work %q %s", name, place), name, ListWorks.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ManifestWorks}, fleet.Query{Resource: fleet.ReplicaSets}))
}

// NoWorkSet is the error for a set of works that does not exist.
func NoWorkSet(name string, hub *fleet.Cluster) *fleet.Error {
	return newAbsentError(fmt.Sprintf("there is no replica set %q on %s", name, hub), name, ListWorkSets.On(hub),
		namesOf(hub, fleet.Query{Resource: fleet.ReplicaSets}))
}

// NoToken is the error for a join token that does not exist.
func NoToken(id string, hub *fleet.Cluster) *fleet.Error {
	return newAbsentError(fmt.Sprintf("there is no token %q on %s", id, hub), id, ListTokens.On(hub),
		func(ctx context.Context) ([]string, error) { return Tokens(ctx, hub) })
}

// namesOf returns a function that lists the names of objects of some kinds.
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

// suggestTimeout bounds the search for similar names.
const suggestTimeout = 2 * time.Second

// Suggest adds to an error about a name that does not exist a similar name, or the namespace
// in which the name exists. It sends another request to the server and ignores its failure.
func Suggest(ctx context.Context, err error) {
	var a *absent
	if !errors.As(err, &a) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	names, err := a.have(ctx)
	if hint := hintFor(a.name, names); err == nil && hint != "" {
		a.shown.Cause = strings.TrimPrefix(a.shown.Cause+"; "+hint, "; ")
	}
}

// hintFor returns the hint about a name that does not exist; names may be NAMESPACE/NAME.
func hintFor(name string, names []string) string {
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
