// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// ErrNotFound is wrapped by every error about a name that does not exist.
var ErrNotFound = errors.New("not found")

// absent is wrapped by the error about a name that does not exist, and knows where to find
// similar names.
type absent struct {
	name string
	hub  *fleet.Cluster
	// kinds are those that may have the name; none means join tokens. namespace is the only one in which to
	// look; empty for all.
	kinds     []schema.GroupVersionResource
	namespace string
	// shown is the error for the user.
	shown *fleet.Error
}

// Error names what was not found.
func (a *absent) Error() string { return a.name + " " + ErrNotFound.Error() }

// Is reports whether target is ErrNotFound.
func (a *absent) Is(target error) bool { return target == ErrNotFound }

// Remedies for a name that does not exist: a list of what exists.
const (
	ListAccounts   fleet.RemedyCode = "naming.ListAccounts"
	ListClusters   fleet.RemedyCode = "naming.ListClusters"
	ListSets       fleet.RemedyCode = "naming.ListSets"
	ListBindings   fleet.RemedyCode = "naming.ListBindings"
	ListPlacements fleet.RemedyCode = "naming.ListPlacements"
	ListAddOns     fleet.RemedyCode = "naming.ListAddOns"
	ListWorks      fleet.RemedyCode = "naming.ListWorks"
	ListWorkSets   fleet.RemedyCode = "naming.ListWorkSets"
	ListTokens     fleet.RemedyCode = "naming.ListTokens"
)

// absentError returns the error about a name that objects of kinds do not have; list shows
// what exists.
func absentError(message, name string, hub *fleet.Cluster, list fleet.Fix, kinds ...schema.GroupVersionResource) *fleet.Error {
	e := &fleet.Error{Message: message, Fix: list}
	e.Err = &absent{name: name, hub: hub, kinds: kinds, shown: e}
	return e
}

// missing is absentError with the usual message.
func missing(what, name string, hub *fleet.Cluster, list fleet.Fix, kinds ...schema.GroupVersionResource) *fleet.Error {
	return absentError(fmt.Sprintf("there is no %s %q on %s", what, name, hub), name, hub, list, kinds...)
}

// NoCluster is the error for a managed cluster that does not exist.
func NoCluster(name string, hub *fleet.Cluster) *fleet.Error {
	return missing("managed cluster", name, hub, ListClusters.On(hub), fleet.ManagedClusters)
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

// NoAccount is the error for a ManagedServiceAccount that a cluster does not have.
func NoAccount(name, cluster string, hub *fleet.Cluster) *fleet.Error {
	e := &fleet.Error{
		Message: fmt.Sprintf("there is no ManagedServiceAccount %q of cluster %s on %s", name, cluster, hub), Fix: ListAccounts.On(hub, "cluster", cluster),
	}
	e.Err = &absent{name: name, hub: hub, kinds: []schema.GroupVersionResource{fleet.ManagedAccounts}, namespace: cluster, shown: e}
	return e
}

// NoSet is the error for a cluster set that does not exist.
func NoSet(name string, hub *fleet.Cluster) *fleet.Error {
	return missing("cluster set", name, hub, ListSets.On(hub), fleet.ManagedClusterSets)
}

// NoBinding is the error for a set that is not bound to a namespace.
func NoBinding(namespace, set string, hub *fleet.Cluster) *fleet.Error {
	return absentError(fmt.Sprintf("namespace %q is not bound to the cluster set %q on %s", namespace, set, hub), namespace+"/"+set,
		hub, ListBindings.On(hub), fleet.SetBindings)
}

// NoPlacement is the error for a placement NAMESPACE/NAME that does not exist; another
// namespace may have one with the name.
func NoPlacement(name string, hub *fleet.Cluster) *fleet.Error {
	return absentError(fmt.Sprintf("there is no placement %s on %s", name, hub), name, hub, ListPlacements.On(hub), fleet.Placements)
}

// NoAddOn is the error for an add-on that does not exist.
func NoAddOn(name string, hub *fleet.Cluster) *fleet.Error {
	return missing("add-on", name, hub, ListAddOns.On(hub), fleet.ManagementAddOns)
}

// NoWork is the error for a work that does not exist in place, which reads "on cluster1".
func NoWork(name, place string, hub *fleet.Cluster) *fleet.Error {
	return absentError(fmt.Sprintf("there is no work %q %s", name, place), name, hub, ListWorks.On(hub), fleet.ManifestWorks, fleet.ReplicaSets)
}

// NoWorkSet is the error for a set of works that does not exist.
func NoWorkSet(name string, hub *fleet.Cluster) *fleet.Error {
	return missing("replica set", name, hub, ListWorkSets.On(hub), fleet.ReplicaSets)
}

// NoToken is the error for a join token that does not exist.
func NoToken(id string, hub *fleet.Cluster) *fleet.Error {
	return missing("token", id, hub, ListTokens.On(hub))
}

// existing lists the names that exist, as NAMESPACE/NAME for namespaced kinds.
func (a *absent) existing(ctx context.Context) ([]string, error) {
	if len(a.kinds) == 0 {
		return Tokens(ctx, a.hub)
	}
	var out []string
	for _, kind := range a.kinds {
		found, err := words(ctx, a.hub, fleet.Query{Resource: kind, Namespace: a.namespace}, func(u metav1.Object) string {
			if a.namespace != "" {
				return u.GetName()
			}
			return strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
		})
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	return out, nil
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
	names, err := a.existing(ctx)
	if hint := hintFor(a.name, names); err == nil && hint != "" {
		a.shown.Cause = strings.TrimPrefix(a.shown.Cause+"; "+hint, "; ")
	}
}

// hintFor returns the hint about a name that does not exist; names may be NAMESPACE/NAME.
func hintFor(name string, names []string) string {
	namespace, base := path.Split(name)
	var near, there []string
	for _, have := range names {
		within, other := path.Split(have)
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

// Nearest returns the name that differs least from word, or "" when none is similar enough.
func Nearest(word string, names []string) string {
	best, bestDistance := "", len(word)/2+1
	for _, name := range names {
		if len(word) > 2 && strings.HasPrefix(name, word) {
			return name
		}
		if len(word)-len(name) >= bestDistance || len(name)-len(word) >= bestDistance {
			continue // each further character is an edit
		}
		if d := distance(word, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// distance returns the number of single-character edits between a and b; swapping two
// neighbours counts as one.
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
