// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"reflect"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// celCluster is a ManagedCluster as an expression sees it: its JSON form, without kind
// and apiVersion. Fields are converted when they are read, so an expression costs only
// what it reads. A celCluster is for one cluster at one time, and for one goroutine.
type celCluster struct {
	mapper
	cluster *cluster
	now     time.Time
	// until is when the first of the scores that were read expires; zero means never.
	until            time.Time
	metadata, status mapper
	labels, spec     ref.Val
}

func newCELCluster(c *cluster, now time.Time) *celCluster {
	v := &celCluster{cluster: c, now: now}
	v.mapper.of = v
	v.metadata.of, v.status.of = (*celMetadata)(v), (*celStatus)(v)
	return v
}

func (v *celCluster) find(name string) ref.Val {
	switch name {
	case "metadata":
		return &v.metadata
	case "status":
		return &v.status
	case "spec":
		if v.spec == nil {
			v.spec = common.SchemalessTypedToVal(&v.cluster.object.Spec)
		}
		return v.spec
	}
	return nil
}

func (v *celCluster) rest() ref.Val  { return nil }
func (v *celCluster) keys() []string { return []string{"metadata", "spec", "status"} }

// celMetadata is the metadata of a cluster; the fields that expressions read most are
// served directly.
type celMetadata celCluster

func (v *celMetadata) find(name string) ref.Val {
	object := v.cluster.object
	switch {
	case name == "labels" && len(object.Labels) > 0:
		if v.labels == nil {
			v.labels = types.NewStringStringMap(types.DefaultTypeAdapter, object.Labels)
		}
		return v.labels
	case name == "name":
		return types.String(object.Name)
	}
	return nil
}

func (v *celMetadata) rest() ref.Val {
	return common.SchemalessTypedToVal(&v.cluster.object.ObjectMeta)
}
func (v *celMetadata) keys() []string { return nil }

// celStatus is the status of a cluster; conditions and version are always present, even
// if they are empty.
type celStatus celCluster

func (v *celStatus) find(name string) ref.Val {
	status := &v.cluster.object.Status
	switch {
	case name == "conditions" && len(status.Conditions) == 0:
		return types.NewRefValList(types.DefaultTypeAdapter, nil)
	case name == "version" && status.Version == clusterv1.ManagedClusterVersion{}:
		return types.NewStringStringMap(types.DefaultTypeAdapter, nil)
	}
	return nil
}

func (v *celStatus) rest() ref.Val  { return common.SchemalessTypedToVal(&v.cluster.object.Status) }
func (v *celStatus) keys() []string { return []string{"conditions", "version"} }

// source provides the values of a mapper.
type source interface {
	// find returns the value of a key, or nil if rest has to be asked.
	find(name string) ref.Val
	// rest builds the map of what find does not know; nil means nothing.
	rest() ref.Val
	// keys are the keys that are always present.
	keys() []string
}

// mapper is a map with string keys.
type mapper struct {
	of source
	// made is the result of rest.
	made traits.Mapper
}

var _ traits.Mapper = &mapper{}

func (m *mapper) others() traits.Mapper {
	if m.made == nil {
		m.made, _ = m.of.rest().(traits.Mapper)
	}
	return m.made
}

// Find returns the value of a key.
func (m *mapper) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	if value := m.of.find(string(name)); value != nil {
		return value, true
	}
	if others := m.others(); others != nil {
		return others.Find(key)
	}
	return nil, false
}

// Get returns the value of a key, or an error.
func (m *mapper) Get(key ref.Val) ref.Val {
	value, ok := m.Find(key)
	if ok || value != nil {
		return value
	}
	return types.NewErr("no such key: %v", key)
}

// Contains reports whether a key has a value.
func (m *mapper) Contains(key ref.Val) ref.Val {
	value, ok := m.Find(key)
	if !ok && value != nil {
		return value
	}
	return types.Bool(ok)
}

// whole returns all entries as a separate map.
func (m *mapper) whole() traits.Mapper {
	all := map[ref.Val]ref.Val{}
	if others := m.others(); others != nil {
		for it := others.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			all[key] = others.Get(key)
		}
	}
	for _, key := range m.of.keys() {
		all[types.String(key)] = m.Get(types.String(key))
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, all)
}

// Iterator iterates over the keys.
func (m *mapper) Iterator() traits.Iterator { return m.whole().Iterator() }

// Size returns the number of keys.
func (m *mapper) Size() ref.Val { return m.whole().Size() }

// Equal compares all entries.
func (m *mapper) Equal(other ref.Val) ref.Val { return m.whole().Equal(other) }

// Type returns the type of maps.
func (m *mapper) Type() ref.Type { return types.MapType }

// Value returns all entries as a Go map.
func (m *mapper) Value() any { return m.whole().Value() }

// ConvertToNative converts all entries to a Go type.
func (m *mapper) ConvertToNative(kind reflect.Type) (any, error) {
	return m.whole().ConvertToNative(kind)
}

// ConvertToType converts the map to a CEL type.
func (m *mapper) ConvertToType(kind ref.Type) ref.Val {
	switch kind {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("a map cannot be made a %s", kind.TypeName())
}
