// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Object names what a manifest declares, by kind, because claims are made before kinds
// are resolved.
type Object struct {
	Group, Kind, Namespace, Name string
}

// claimant is a work with what it declares.
type claimant struct {
	work    string
	since   time.Time
	configs []workv1.ManifestConfigOption
	claims  []claim
}

// claim is an object that a work declares and the content it declares, as digests.
type claim struct{ object, content digest.Sum }

// Claims record which works declare which objects. When several works of this cluster
// declare one object with different content, the oldest work decides its content and the
// others report that in their conditions; otherwise they would overwrite each other
// endlessly. A work that cannot write the object, and never did, decides nothing and
// blocks no other work.
//
// Only digests are kept of an object, some 70 bytes.
type Claims struct {
	wake func(work string)

	mu    sync.Mutex
	works map[string]*claimant
	// single holds the claimant of an object that only one work claims, shared the
	// claimants of all others.
	single map[digest.Sum]*claimant
	shared map[digest.Sum][]*claimant
	// epochs counts, for each work, how often its rivals changed.
	epochs map[string]uint64
	// unable holds the objects that a work claims and cannot write, by work.
	unable map[string]sets.Set[digest.Sum]
}

func newClaims(wake func(string)) *Claims {
	return &Claims{
		wake: wake, works: map[string]*claimant{}, single: map[digest.Sum]*claimant{}, shared: map[digest.Sum][]*claimant{},
		epochs: map[string]uint64{}, unable: map[string]sets.Set[digest.Sum]{},
	}
}

// Set replaces the claims of a work. Other works that claim an object which the work
// released, or now declares with other content, are woken.
func (c *Claims) Set(work *workv1.ManifestWork) {
	contents := make(map[digest.Sum]digest.Sum, len(work.Spec.Workload.Manifests))
	for _, m := range work.Spec.Workload.Manifests {
		if gvk, namespace, name := manifest.Head(m.Raw); gvk.Kind != "" && name != "" {
			contents[Object{gvk.Group, gvk.Kind, namespace, name}.sum()] = digest.OfBytes(m.Raw)
		}
	}
	claims := make([]claim, 0, len(contents))
	for o, content := range contents {
		claims = append(claims, claim{o, content})
	}
	slices.SortFunc(claims, func(a, b claim) int { return bytes.Compare(a.object[:], b.object[:]) })
	c.replace(work.Name, &claimant{
		work: work.Name, since: work.CreationTimestamp.Time, configs: strategies(work.Spec.ManifestConfigs), claims: claims,
	})
}

// Release drops all claims of a work.
func (c *Claims) Release(work string) { c.replace(work, nil) }

func (c *Claims) replace(work string, next *claimant) {
	c.change(func(rivals map[string]bool) {
		before := c.works[work]
		for _, had := range before.all() {
			content, still := next.content(had.object)
			c.dropClaimant(had.object, before)
			if !still || content != had.content || !reflect.DeepEqual(before.configs, next.configs) {
				c.addRivals(had.object, rivals)
			}
		}
		for _, now := range next.all() {
			if _, had := before.content(now.object); !had {
				c.addRivals(now.object, rivals)
			}
			c.setClaimants(now.object, append(slices.Clone(c.claimants(now.object)), next))
		}
		if len(next.all()) == 0 {
			delete(c.works, work)
		} else {
			c.works[work] = next
		}
		if next == nil {
			delete(c.epochs, work)
			delete(c.unable, work)
		}
	})
}

// change changes claims, and wakes the works that do adds to rivals.
func (c *Claims) change(do func(rivals map[string]bool)) {
	rivals := map[string]bool{}
	c.mu.Lock()
	do(rivals)
	for rival := range rivals {
		c.epochs[rival]++
	}
	c.mu.Unlock()
	for rival := range rivals {
		c.wake(rival)
	}
}

// Unable replaces the objects that a work cannot write and never wrote. Other works that
// claim an object for which this changed are woken.
func (c *Claims) Unable(work string, objects []Object) {
	next := sets.Set[digest.Sum]{}
	for _, o := range objects {
		next.Insert(o.sum())
	}
	c.change(func(rivals map[string]bool) {
		for o := range c.unable[work].SymmetricDifference(next) {
			c.addRivals(o, rivals)
		}
		delete(rivals, work)
		delete(c.unable, work)
		if len(next) > 0 {
			c.unable[work] = next
		}
	})
}

// all returns what a claimant declares; a nil claimant declares nothing.
func (k *claimant) all() []claim {
	if k == nil {
		return nil
	}
	return k.claims
}

// content returns the content that a claimant declares for an object.
func (k *claimant) content(o digest.Sum) (digest.Sum, bool) {
	all := k.all()
	i, found := slices.BinarySearchFunc(all, o, func(c claim, o digest.Sum) int { return bytes.Compare(c.object[:], o[:]) })
	if !found {
		return digest.Sum{}, false
	}
	return all[i].content, true
}

// addRivals adds the claimants of an object.
func (c *Claims) addRivals(o digest.Sum, rivals map[string]bool) {
	for _, other := range c.claimants(o) {
		rivals[other.work] = true
	}
}

// claimants returns all works that claim an object.
func (c *Claims) claimants(o digest.Sum) []*claimant {
	if one := c.single[o]; one != nil {
		return []*claimant{one}
	}
	return c.shared[o]
}

func (c *Claims) dropClaimant(o digest.Sum, k *claimant) {
	c.setClaimants(o, slices.DeleteFunc(slices.Clone(c.claimants(o)), func(other *claimant) bool { return other == k }))
}

func (c *Claims) setClaimants(o digest.Sum, list []*claimant) {
	delete(c.single, o)
	delete(c.shared, o)
	switch len(list) {
	case 0:
	case 1:
		c.single[o] = list[0]
	default:
		c.shared[o] = list
	}
}

// Epoch changes whenever the rivals of a work may have changed.
func (c *Claims) Epoch(work string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epochs[work]
}

// Rival is a work that declares the same object with other content, came first, and has
// written it or may.
type Rival struct {
	// Work is its name.
	Work string
	// Configs are its update strategies, which may give it a field manager of its own, or
	// keep it from writing at all.
	Configs []workv1.ManifestConfigOption
}

// Rivals returns all rivals of a work, the oldest first.
func (c *Claims) Rivals(work string, object Object) []Rival {
	o := object.sum()
	c.mu.Lock()
	defer c.mu.Unlock()
	sorted := slices.Clone(c.shared[o])
	slices.SortFunc(sorted, func(a, b *claimant) int {
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.work, b.work))
	})
	mine := slices.IndexFunc(sorted, func(k *claimant) bool { return k.work == work })
	var out []Rival
	for i := range sorted[:max(mine, 0)] {
		theirs, _ := sorted[i].content(o)
		if ours, _ := sorted[mine].content(o); theirs != ours && !c.unable[sorted[i].work].Has(o) {
			out = append(out, Rival{Work: sorted[i].work, Configs: sorted[i].configs})
		}
	}
	return out
}

// Wanted returns a function that reports whether a work other than this one declares a
// recorded object, whose kind it is given, and may write it.
func (c *Claims) Wanted(work string, recorded workv1.AppliedManifestResourceMeta) func(kind string) bool {
	return func(kind string) bool {
		o := Object{recorded.Group, kind, recorded.Namespace, recorded.Name}.sum()
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.claimants(o), func(other *claimant) bool {
			if other.work == work || c.unable[other.work].Has(o) {
				return false
			}
			options, err := apply.OptionsFor(&workv1.ManifestWorkSpec{ManifestConfigs: other.configs}, apply.RecordedID(recorded))
			return err == nil && options.Strategy != workv1.UpdateStrategyTypeReadOnly
		})
	}
}

// sum digests the name of an object.
func (o Object) sum() digest.Sum {
	return digest.OfParts(o.Group, o.Kind, o.Namespace, o.Name)
}

// strategies returns the entries that name an update strategy, without their other
// fields.
func strategies(configs []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	var out []workv1.ManifestConfigOption
	for _, c := range configs {
		if c.UpdateStrategy != nil {
			out = append(out, workv1.ManifestConfigOption{ResourceIdentifier: c.ResourceIdentifier, UpdateStrategy: c.UpdateStrategy})
		}
	}
	return out
}
