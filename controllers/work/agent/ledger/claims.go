// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
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
	unable map[string]map[digest.Sum]bool
}

func newClaims(wake func(string)) *Claims {
	return &Claims{
		wake: wake, works: map[string]*claimant{}, single: map[digest.Sum]*claimant{}, shared: map[digest.Sum][]*claimant{},
		epochs: map[string]uint64{}, unable: map[string]map[digest.Sum]bool{},
	}
}

// Set replaces the claims of a work. Other works that claim an object which the work
// released, or now declares with other content, are woken.
func (c *Claims) Set(work *workv1.ManifestWork) {
	contents := make(map[digest.Sum]digest.Sum, len(work.Spec.Workload.Manifests))
	for i := range work.Spec.Workload.Manifests {
		if o, content, ok := declared(work.Spec.Workload.Manifests[i].Raw); ok {
			contents[o.sum()] = content
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
	c.mu.Lock()
	before := c.works[work]
	rivals := map[string]bool{}
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
		c.addClaimant(now.object, next)
	}
	if len(next.all()) == 0 {
		delete(c.works, work)
	} else {
		c.works[work] = next
	}
	for rival := range rivals {
		c.epochs[rival]++
	}
	if next == nil {
		delete(c.epochs, work)
		delete(c.unable, work)
	}
	c.mu.Unlock()
	for rival := range rivals {
		c.wake(rival)
	}
}

// Unable replaces the objects that a work cannot write and never wrote. Other works that
// claim an object for which this changed are woken.
func (c *Claims) Unable(work string, objects []Object) {
	var next map[digest.Sum]bool
	for _, o := range objects {
		if next == nil {
			next = map[digest.Sum]bool{}
		}
		next[o.sum()] = true
	}
	c.mu.Lock()
	rivals := map[string]bool{}
	for _, sums := range []map[digest.Sum]bool{c.unable[work], next} {
		for o := range sums {
			if c.unable[work][o] != next[o] {
				c.addRivals(o, rivals)
			}
		}
	}
	delete(rivals, work)
	delete(c.unable, work)
	if next != nil {
		c.unable[work] = next
	}
	for rival := range rivals {
		c.epochs[rival]++
	}
	c.mu.Unlock()
	for rival := range rivals {
		c.wake(rival)
	}
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

func (c *Claims) addClaimant(o digest.Sum, k *claimant) {
	c.setClaimants(o, append(slices.Clone(c.claimants(o)), k))
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
		if order := a.since.Compare(b.since); order != 0 {
			return order
		}
		return strings.Compare(a.work, b.work)
	})
	mine := slices.IndexFunc(sorted, func(k *claimant) bool { return k.work == work })
	var out []Rival
	for i := range sorted[:max(mine, 0)] {
		theirs, _ := sorted[i].content(o)
		if ours, _ := sorted[mine].content(o); theirs != ours && !c.unable[sorted[i].work][o] {
			out = append(out, Rival{Work: sorted[i].work, Configs: sorted[i].configs})
		}
	}
	return out
}

// sum digests the name of an object.
func (o Object) sum() digest.Sum {
	return digest.OfParts(o.Group, o.Kind, o.Namespace, o.Name)
}

// declared reads which object a manifest declares, without decoding the rest of it.
func declared(raw []byte) (Object, digest.Sum, bool) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || head.Kind == "" || head.Metadata.Name == "" {
		return Object{}, digest.Sum{}, false
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil {
		return Object{}, digest.Sum{}, false
	}
	return Object{gv.Group, head.Kind, head.Metadata.Namespace, head.Metadata.Name}, digest.OfBytes(raw), true
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
