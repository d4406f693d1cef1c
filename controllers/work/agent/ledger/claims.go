// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Object names what a manifest declares, by kind, because claims are made
// before kinds are resolved.
type Object struct {
	Group, Kind, Namespace, Name string
}

// claim is one work's manifest of an object.
type claim struct {
	work    string
	since   time.Time
	content Sum
	configs []workv1.ManifestConfigOption
}

// Claims hold which works declare which objects. When several works of this
// cluster declare one object with different content, the oldest decides what it
// looks like and the others say so in their conditions; without that rule they
// would overwrite each other without end.
type Claims struct {
	wake func(work string)

	mu      sync.Mutex
	objects map[Object][]claim
	works   map[string][]Object
	// epochs count, for each work, how often its rivals changed.
	epochs map[string]uint64
}

func newClaims(wake func(string)) *Claims {
	return &Claims{wake: wake, objects: map[Object][]claim{}, works: map[string][]Object{}, epochs: map[string]uint64{}}
}

// Set replaces the claims of a work. Other works that claim an object which the
// work let go, or declares otherwise than before, are woken.
func (c *Claims) Set(work *workv1.ManifestWork) {
	next := map[Object]claim{}
	for i := range work.Spec.Workload.Manifests {
		if o, sum, ok := declared(work.Spec.Workload.Manifests[i].Raw); ok {
			next[o] = claim{
				work: work.Name, since: work.CreationTimestamp.Time, content: sum,
				configs: strategies(work.Spec.ManifestConfigs),
			}
		}
	}
	c.replace(work.Name, next)
}

// Release drops all claims of a work.
func (c *Claims) Release(work string) { c.replace(work, nil) }

func (c *Claims) replace(work string, next map[Object]claim) {
	c.mu.Lock()
	rivals := map[string]bool{}
	for _, o := range c.works[work] {
		if _, kept := next[o]; !kept {
			c.put(o, work, nil, rivals)
		}
	}
	delete(c.works, work)
	for o, n := range next {
		c.put(o, work, &n, rivals)
		c.works[work] = append(c.works[work], o)
	}
	for rival := range rivals {
		c.epochs[rival]++
	}
	if next == nil {
		delete(c.epochs, work)
	}
	c.mu.Unlock()
	for rival := range rivals {
		c.wake(rival)
	}
}

// put replaces one claim, and names the rivals if that changes anything.
func (c *Claims) put(o Object, work string, next *claim, rivals map[string]bool) {
	var before *claim
	var others []claim
	for _, have := range c.objects[o] {
		if have.work == work {
			before = &have
		} else {
			others = append(others, have)
		}
	}
	if next == nil || before == nil || before.content != next.content || !reflect.DeepEqual(before.configs, next.configs) {
		for _, other := range others {
			rivals[other.work] = true
		}
	}
	if next != nil {
		others = append(others, *next)
	}
	if len(others) == 0 {
		delete(c.objects, o)
		return
	}
	c.objects[o] = others
}

// Epoch changes whenever the rivals of a work may have changed.
func (c *Claims) Epoch(work string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epochs[work]
}

// Rival is a work that declares the same object with other content and came
// before.
type Rival struct {
	// Work is its name.
	Work string
	// Configs are its update strategies, which may give it a field manager of its
	// own, or keep it from writing at all.
	Configs []workv1.ManifestConfigOption
}

// Rivals are all rivals of a work, the oldest first.
func (c *Claims) Rivals(work string, o Object) []Rival {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.objects[o]
	if len(list) < 2 {
		return nil
	}
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b claim) int {
		if order := a.since.Compare(b.since); order != 0 {
			return order
		}
		return strings.Compare(a.work, b.work)
	})
	mine := slices.IndexFunc(sorted, func(s claim) bool { return s.work == work })
	var out []Rival
	for i := range sorted[:max(mine, 0)] {
		if sorted[i].content != sorted[mine].content {
			out = append(out, Rival{Work: sorted[i].work, Configs: sorted[i].configs})
		}
	}
	return out
}

// declared reads what a manifest is about without decoding the rest of it.
func declared(raw []byte) (Object, Sum, bool) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || head.Kind == "" || head.Metadata.Name == "" {
		return Object{}, Sum{}, false
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil {
		return Object{}, Sum{}, false
	}
	full := sha256.Sum256(raw)
	return Object{gv.Group, head.Kind, head.Metadata.Namespace, head.Metadata.Name}, Sum(full[:len(Sum{})]), true
}

// strategies are the entries that name an update strategy, without the rest.
func strategies(configs []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	var out []workv1.ManifestConfigOption
	for _, c := range configs {
		if c.UpdateStrategy != nil {
			out = append(out, workv1.ManifestConfigOption{ResourceIdentifier: c.ResourceIdentifier, UpdateStrategy: c.UpdateStrategy})
		}
	}
	return out
}
