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

// celCluster is a ManagedCluster as an expression sees it: what JSON shows of it,
// without kind and apiVersion. It is read in place, part by part, so that an
// expression costs what it looks at. It is for one cluster at one moment, and for
// one goroutine.
type celCluster struct {
	mapper
	cluster *cluster
	now     time.Time
	// until is when the first of the scores that were read expires; zero is never.
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

// celMetadata is the metadata of a cluster; what expressions ask for most is at
// hand.
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

// celStatus is the status of a cluster; conditions and version are always there,
// also when they are empty.
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

// source is where a mapper gets its values from.
type source interface {
	// find is the value of a key, or nil where rest has to be asked.
	find(name string) ref.Val
	// rest makes the map of what find does not know; nil is nothing.
	rest() ref.Val
	// keys are those that are always there.
	keys() []string
}

// mapper is a map with text as keys.
type mapper struct {
	of source
	// made is what rest made.
	made traits.Mapper
}

var _ traits.Mapper = &mapper{}

func (m *mapper) others() traits.Mapper {
	if m.made == nil {
		m.made, _ = m.of.rest().(traits.Mapper)
	}
	return m.made
}

// Find is the value of a key.
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

// Get is the value of a key, or an error.
func (m *mapper) Get(key ref.Val) ref.Val {
	value, ok := m.Find(key)
	if ok || value != nil {
		return value
	}
	return types.NewErr("no such key: %v", key)
}

// Contains tells whether there is a value for a key.
func (m *mapper) Contains(key ref.Val) ref.Val {
	value, ok := m.Find(key)
	if !ok && value != nil {
		return value
	}
	return types.Bool(ok)
}

// whole is everything in it, as a map of its own.
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

// Iterator goes through the keys.
func (m *mapper) Iterator() traits.Iterator { return m.whole().Iterator() }

// Size is the number of keys.
func (m *mapper) Size() ref.Val { return m.whole().Size() }

// Equal compares all of it.
func (m *mapper) Equal(other ref.Val) ref.Val { return m.whole().Equal(other) }

// Type is that of maps.
func (m *mapper) Type() ref.Type { return types.MapType }

// Value is all of it as a Go map.
func (m *mapper) Value() any { return m.whole().Value() }

// ConvertToNative gives all of it in that Go type.
func (m *mapper) ConvertToNative(kind reflect.Type) (any, error) {
	return m.whole().ConvertToNative(kind)
}

// ConvertToType gives it as a value of that type.
func (m *mapper) ConvertToType(kind ref.Type) ref.Val {
	switch kind {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("a map cannot be made a %s", kind.TypeName())
}
