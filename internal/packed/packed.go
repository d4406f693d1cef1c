// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	timeType   = reflect.TypeFor[metav1.Time]()
	metaType   = reflect.TypeFor[metav1.ObjectMeta]()
	typeType   = reflect.TypeFor[metav1.TypeMeta]()
	ownJSON    = reflect.TypeFor[json.Marshaler]()
	ownReading = reflect.TypeFor[json.Unmarshaler]()
)

// marshals reports whether a type has its own JSON encoding.
func marshals(t reflect.Type) bool {
	return (t.Implements(ownJSON) || reflect.PointerTo(t).Implements(ownJSON)) && reflect.PointerTo(t).Implements(ownReading)
}

// Packable returns why the type that object points to cannot be packed, or nil if it can.
func Packable(object any) error { return packable(reflect.TypeOf(object).Elem()) }

// packable returns why values of a type cannot be packed; within are the types that
// contain it.
func packable(t reflect.Type, within ...reflect.Type) error {
	if t == timeType || t == metaType || t == typeType || marshals(t) {
		return nil
	}
	if slices.Contains(within, t) {
		return fmt.Errorf("%s contains itself", t)
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	case reflect.Pointer, reflect.Slice:
		return packable(t.Elem(), within...)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("the keys of %s are not strings", t)
		}
		return packable(t.Elem(), within...)
	case reflect.Struct:
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				return fmt.Errorf("field %s of %s is not exported", t.Field(i).Name, t)
			}
			if err := packable(t.Field(i).Type, within...); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s is of a kind that cannot be packed", t)
}

// Pack packs the value that object points to, whose type must be packable. The names in
// its metadata are omitted.
func (d *Dictionary) Pack(object any) string {
	w := writer{words: d, out: make([]byte, 0, 1024)}
	w.value(reflect.ValueOf(object).Elem())
	return string(w.out)
}

// Unpack restores a packed value into what object points to, an empty value of the packed
// type.
func (d *Dictionary) Unpack(data string, object any) {
	r := reader{words: d, in: data}
	r.value(reflect.ValueOf(object).Elem())
}

func (w *writer) value(v reflect.Value) { //nolint:gocyclo // one case for each kind of value
	switch t := v.Type(); {
	case t == typeType:
		return
	case t == metaType:
		m, _ := v.Addr().Interface().(*metav1.ObjectMeta)
		w.meta(m)
		return
	case t == timeType:
		at, _ := v.Addr().Interface().(*metav1.Time)
		w.time(at)
		return
	case marshals(t) && t.Kind() != reflect.Pointer:
		raw, _ := json.Marshal(v.Addr().Interface()) // without JSON it comes back as the zero value
		w.text(string(raw))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		w.count(present(v.Bool()))
	case reflect.String:
		w.repeated(v.String())
	case reflect.Float32, reflect.Float64:
		w.out = binary.AppendUvarint(w.out, math.Float64bits(v.Float()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.signed(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.out = binary.AppendUvarint(w.out, v.Uint())
	case reflect.Pointer:
		w.count(present(!v.IsNil()))
		if !v.IsNil() {
			w.value(v.Elem())
		}
	case reflect.Slice:
		w.size(v)
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Map:
		w.mapping(v)
	case reflect.Struct:
		for i := range v.NumField() {
			w.value(v.Field(i))
		}
	}
}

// mapping packs a map in the order of its keys.
func (w *writer) mapping(v reflect.Value) {
	w.size(v)
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		w.repeated(key.String())
		one := reflect.New(v.Type().Elem()).Elem() // fields of what a map holds have no address
		one.Set(v.MapIndex(key))
		w.value(one)
	}
}

// size distinguishes nil from an empty slice or map.
func (w *writer) size(v reflect.Value) {
	if v.IsNil() {
		w.count(0)
		return
	}
	w.count(v.Len() + 1)
}

// A word begins with its length, or with one of these. Numbers of words follow them.
const (
	// longestSpelled is the length from which on the length takes bytes of its own.
	longestSpelled = 64
	// spelledUID is a UID, without its dashes.
	spelledUID = longestSpelled + 1
)

func (w *writer) repeated(s string) {
	if raw, ok := BinaryUID(types.UID(s)); ok {
		w.count(spelledUID)
		w.out = append(w.out, raw[:]...)
		return
	}
	if n := w.words.repeated(s, w.object); n > 0 {
		w.out = binary.AppendUvarint(w.out, n+spelledUID)
		return
	}
	if len(s) >= longestSpelled {
		w.count(longestSpelled)
	}
	w.text(s)
}

func present(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (r *reader) value(v reflect.Value) { //nolint:gocyclo // one case for each kind of value
	switch t := v.Type(); {
	case t == typeType:
		return
	case t == metaType:
		m, _ := v.Addr().Interface().(*metav1.ObjectMeta)
		r.meta(m)
		return
	case t == timeType:
		v.Set(reflect.ValueOf(r.time()))
		return
	case marshals(t) && t.Kind() != reflect.Pointer:
		if raw := r.bytes(r.count()); raw != "" {
			_ = json.Unmarshal([]byte(raw), v.Addr().Interface()) // written by the same type
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.count() > 0)
	case reflect.String:
		v.SetString(r.repeated())
	case reflect.Float32, reflect.Float64:
		v.SetFloat(math.Float64frombits(r.count()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.signed())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.count())
	case reflect.Pointer:
		if r.count() > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.value(v.Elem())
		}
	case reflect.Slice:
		if n, any := r.size(); any {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				r.value(v.Index(i))
			}
		}
	case reflect.Map:
		if n, any := r.size(); any {
			v.Set(reflect.MakeMapWithSize(v.Type(), n))
			for range n {
				key := reflect.ValueOf(r.repeated()).Convert(v.Type().Key())
				one := reflect.New(v.Type().Elem()).Elem()
				r.value(one)
				v.SetMapIndex(key, one)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.value(v.Field(i))
		}
	}
}

// size returns how many elements follow, and whether the slice or map is not nil.
func (r *reader) size() (int, bool) {
	n := r.count()
	return int(n) - 1, n > 0 //nolint:gosec // a length in memory
}

func (r *reader) repeated() string {
	switch n := r.count(); {
	case n > spelledUID:
		return r.words.word(n - spelledUID)
	case n == spelledUID:
		return string(r.rawUID())
	case n == longestSpelled:
		return r.bytes(r.count())
	default:
		return r.bytes(n)
	}
}
