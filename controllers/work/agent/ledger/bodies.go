// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"container/list"
	"encoding/json"
	"sync"

	"github.com/klauspost/compress/flate"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// maxBodies bounds the works that stay in memory, in bytes. They are kept as
	// compressed JSON, a tenth of the text, which is enough for some 2,000 works of ten
	// manifests. Raising it lets drift of more works be repaired while the hub is
	// unreachable; lowering it saves memory and costs a GET on the hub for each repair of
	// a dropped work.
	maxBodies = 2 << 20
	// bodyOverhead is roughly what a work takes besides its text, in bytes.
	bodyOverhead = 256
)

// bodies holds whole works; the least recently used are dropped first.
type bodies struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List
	items map[string]*list.Element
}

// body is one work in compressed JSON.
type body struct {
	name, version string
	uid           types.UID
	text          []byte
}

func (b *body) size() int { return bodyOverhead + len(b.text) }

func newBodies(limit int) *bodies {
	return &bodies{limit: limit, order: list.New(), items: map[string]*list.Element{}}
}

// put stores a work, replacing an earlier version of it.
func (b *bodies) put(work *workv1.ManifestWork) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.items[work.Name]; ok {
		have := e.Value.(*body)
		if have.uid == work.UID && (have.version == work.ResourceVersion || older(work.ResourceVersion, have.version)) {
			return
		}
	}
	b.remove(work.Name)
	text, err := compress(work)
	next := &body{name: work.Name, version: work.ResourceVersion, uid: work.UID, text: text}
	if err != nil || next.size() > b.limit/2 {
		return
	}
	b.items[work.Name] = b.order.PushFront(next)
	b.size += next.size()
	for b.size > b.limit {
		b.remove(b.order.Back().Value.(*body).name)
	}
}

// get returns the work in exactly that version, or nil.
func (b *bodies) get(name, version string) *workv1.ManifestWork {
	b.mu.Lock()
	e, ok := b.items[name]
	if !ok || e.Value.(*body).version != version {
		b.mu.Unlock()
		return nil
	}
	b.order.MoveToFront(e)
	text := e.Value.(*body).text
	b.mu.Unlock()
	work := &workv1.ManifestWork{}
	if json.NewDecoder(flate.NewReader(bytes.NewReader(text))).Decode(work) != nil {
		return nil
	}
	return work
}

func (b *bodies) drop(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(name)
}

func (b *bodies) remove(name string) {
	e, ok := b.items[name]
	if !ok {
		return
	}
	b.size -= e.Value.(*body).size()
	b.order.Remove(e)
	delete(b.items, name)
}

// compress returns a work as compressed JSON. Nothing stays in memory between two calls; a writer
// of the standard library would keep more than a megabyte.
func compress(work *workv1.ManifestWork) ([]byte, error) {
	text, err := json.Marshal(work)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = flate.StatelessDeflate(&out, text, true, nil)
	return bytes.Clone(out.Bytes()), err
}
