// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxWords bounds the dictionary: users who may label objects must not be able to fill
// the memory of this process with new words.
const maxWords = 1000

// longestWord bounds the words that get a number when they are seen again, in bytes.
const longestWord = 200

var seed = maphash.MakeSeed()

// Dictionary numbers the words that many objects share: keys of labels and annotations,
// finalizers, and in objects that are packed whole the strings that many of them contain.
// Other words are spelled out. What was packed with a Dictionary must be unpacked with
// the same one. The zero value is ready to use. It is safe for concurrent use.
type Dictionary struct {
	mu      sync.RWMutex
	numbers map[string]uint64
	words   []string
	// seen are the words that repeated saw last, the latest of each row first. Words that
	// share a row by chance do not evict each other at once.
	seen [64]row
}

type row [4]sight

// sight is a word with the object that contained it, as hashes.
type sight struct{ word, object uint64 }

// repeated returns the number of a word of an object that is packed whole. A word gets
// one when a second object contains it, so that words of only one object do not fill the
// dictionary, however often that object is packed.
func (d *Dictionary) repeated(word string, object uint64) uint64 {
	if word == "" || len(word) > longestWord {
		return 0
	}
	d.mu.Lock()
	n, known := d.numbers[word]
	hash := maphash.String(seed, word)
	again := d.seen[hash%uint64(len(d.seen))].see(sight{hash, object})
	d.mu.Unlock()
	if known || !again {
		return n
	}
	return d.number(word)
}

// see records a sight, and reports whether another object contained the word before.
func (r *row) see(now sight) bool {
	i := slices.IndexFunc(r[:], func(s sight) bool { return s.word == now.word })
	again := i >= 0 && r[i].object != now.object
	if i < 0 {
		i = len(r) - 1 // the oldest goes
	}
	copy(r[1:i+1], r[:i])
	r[0] = now
	return again
}

// number returns the number of a word, from 1 on; 0 if the dictionary is full.
func (d *Dictionary) number(word string) uint64 {
	d.mu.RLock()
	n, ok := d.numbers[word]
	d.mu.RUnlock()
	if ok {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.numbers[word]; ok || len(d.words) >= maxWords {
		return n
	}
	if d.numbers == nil {
		d.numbers = map[string]uint64{}
	}
	word = strings.Clone(word)
	d.words = append(d.words, word)
	d.numbers[word] = uint64(len(d.words))
	return d.numbers[word]
}

func (d *Dictionary) word(n uint64) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.words[n-1]
}

// writer packs the metadata of one object.
type writer struct {
	words *Dictionary
	out   []byte
	// object is a hash of its UID.
	object uint64
}

func (w *writer) count(n int)    { w.out = binary.AppendUvarint(w.out, uint64(n)) } //nolint:gosec // never negative
func (w *writer) signed(n int64) { w.out = binary.AppendVarint(w.out, n) }
func (w *writer) text(s string)  { w.count(len(s)); w.out = append(w.out, s...) }
func (w *writer) time(t *metav1.Time) {
	if t.IsZero() {
		w.signed(0)
		return
	}
	w.signed(t.Unix())
}

func (w *writer) word(s string) {
	n := w.words.number(s)
	w.out = binary.AppendUvarint(w.out, n)
	if n == 0 {
		w.text(s)
	}
}

func (w *writer) pairs(m map[string]string) {
	w.count(len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.word(key)
		w.text(m[key])
	}
}

// The length of a UID, in bytes: without its dashes, and as text.
const uidBytes, uidLength = 16, 36

func (w *writer) uid(uid types.UID) {
	raw, ok := BinaryUID(uid)
	if !ok {
		w.count(len(uid) + 1)
		w.out = append(w.out, uid...)
		return
	}
	w.count(0)
	w.out = append(w.out, raw[:]...)
}

// BinaryUID returns a UID of the usual form without its dashes; false for any other text.
func BinaryUID(uid types.UID) (out [uidBytes]byte, ok bool) {
	if len(uid) != uidLength {
		return out, false
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(string(uid), "-", ""))
	if err != nil || len(raw) != uidBytes {
		return out, false
	}
	out = [uidBytes]byte(raw)
	return out, TextUID(out) == uid
}

// TextUID returns the usual form of a UID.
func TextUID(raw [uidBytes]byte) types.UID {
	s := hex.EncodeToString(raw[:])
	return types.UID(s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:])
}

// meta packs version, UID, generation, times, labels, annotations and finalizers of an
// object. Owner references and the rest are dropped.
func (w *writer) meta(o *metav1.ObjectMeta) {
	w.object = maphash.String(seed, string(o.UID))
	w.uid(o.UID)
	w.text(o.ResourceVersion)
	w.signed(o.Generation)
	w.time(&o.CreationTimestamp)
	w.time(o.DeletionTimestamp)
	w.pairs(o.Labels)
	w.pairs(o.Annotations)
	w.count(len(o.Finalizers))
	for _, f := range o.Finalizers {
		w.word(f)
	}
}

// PackMeta packs the metadata of an object except its names.
func (d *Dictionary) PackMeta(o *metav1.ObjectMeta) string {
	w := writer{words: d, out: make([]byte, 0, 128)}
	w.meta(o)
	return string(w.out)
}

// reader unpacks what a writer packed.
type reader struct {
	words *Dictionary
	in    string
}

func (r *reader) count() uint64 {
	n, size := binary.Uvarint([]byte(r.in[:min(len(r.in), binary.MaxVarintLen64)]))
	r.in = r.in[size:]
	return n
}

func (r *reader) signed() int64 {
	n, size := binary.Varint([]byte(r.in[:min(len(r.in), binary.MaxVarintLen64)]))
	r.in = r.in[size:]
	return n
}

func (r *reader) bytes(n uint64) string {
	out := r.in[:n]
	r.in = r.in[n:]
	return out
}

func (r *reader) time() metav1.Time {
	if seconds := r.signed(); seconds != 0 {
		return metav1.Unix(seconds, 0)
	}
	return metav1.Time{}
}

func (r *reader) word() string {
	if n := r.count(); n > 0 {
		return r.words.word(n)
	}
	return r.bytes(r.count())
}

func (r *reader) pairs() map[string]string {
	n := r.count()
	if n == 0 {
		return nil
	}
	out := make(map[string]string, n)
	for range n {
		key := r.word()
		out[key] = r.bytes(r.count())
	}
	return out
}

func (r *reader) uid() types.UID {
	if n := r.count(); n > 0 {
		return types.UID(r.bytes(n - 1))
	}
	return r.rawUID()
}

func (r *reader) rawUID() types.UID { return TextUID([uidBytes]byte([]byte(r.bytes(uidBytes)))) }

// meta unpacks what writer.meta packed.
func (r *reader) meta(o *metav1.ObjectMeta) {
	o.UID = r.uid()
	o.ResourceVersion = r.bytes(r.count())
	o.Generation = r.signed()
	o.CreationTimestamp = r.time()
	if deleted := r.time(); !deleted.IsZero() {
		o.DeletionTimestamp = &deleted
	}
	o.Labels = r.pairs()
	o.Annotations = r.pairs()
	for range r.count() {
		o.Finalizers = append(o.Finalizers, r.word())
	}
}

// UnpackMeta restores the packed metadata into o.
func (d *Dictionary) UnpackMeta(data string, o *metav1.ObjectMeta) {
	r := reader{words: d, in: data}
	r.meta(o)
}
