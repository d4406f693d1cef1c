// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// Limits of a list; maxSize is that of all values together, in bytes.
const (
	maxEntries = 1000
	maxSize    = 128 << 10
)

// List is what a managed cluster exposes. An empty one exposes nothing.
type List struct{ entries []Target }

// entry is an entry as it is written.
type entry struct {
	Namespace string              `json:"namespace"`
	Service   string              `json:"service"`
	Port      *intstr.IntOrString `json:"port,omitempty"`
	Protocol  string              `json:"protocol,omitempty"`
}

// ReadList reads the data of a ConfigMap, of which each value is a YAML list. It is read whole or
// not at all: the error names the key and the entry, and what is allowed.
func ReadList(data map[string]string) (List, error) {
	var out List
	size := 0
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if size += len(data[key]); size > maxSize {
			return List{}, fmt.Errorf("it has more than %d bytes", maxSize)
		}
		var entries []entry
		if err := yaml.UnmarshalStrict([]byte(data[key]), &entries); err != nil {
			return List{}, fmt.Errorf("key %s is not a list of entries with namespace, service, port and protocol: %w", key, err)
		}
		if len(out.entries)+len(entries) > maxEntries {
			return List{}, fmt.Errorf("it has more than %d entries", maxEntries)
		}
		for i, e := range entries {
			t, err := e.read()
			if err != nil {
				return List{}, fmt.Errorf("key %s, entry %d: %w", key, i+1, err)
			}
			out.entries = append(out.entries, t)
		}
	}
	return out, nil
}

// Sift reads one value of such a ConfigMap entry by entry: what an agent takes, and why it takes the others not. The
// error says why there are no entries.
func Sift(value string) (taken []Target, left []error, err error) {
	var entries []json.RawMessage
	if err := yaml.Unmarshal([]byte(value), &entries); err != nil {
		return nil, nil, fmt.Errorf("it is not a list: %w", err)
	}
	for i, raw := range entries {
		var e entry
		var t Target
		err := yaml.UnmarshalStrict(raw, &e)
		if err == nil {
			t, err = e.read()
		}
		if err == nil && t.isAPIServer() {
			err = errors.New("it is the API server, which managedclusters/proxy leads to")
		}
		if err != nil {
			left = append(left, fmt.Errorf("entry %d: %w", i+1, err))
			continue
		}
		taken = append(taken, t)
	}
	return taken, left, nil
}

// read returns the Services of an entry: without Scheme or Port it means any.
func (e entry) read() (Target, error) {
	t := Target{Namespace: e.Namespace, Name: e.Service, Scheme: e.Protocol}
	if e.Port != nil {
		port, ok := readPort(e.Port.String())
		if !ok {
			return Target{}, fmt.Errorf("port %q must be a number from 1 to 65535; leave it out to expose all ports", e.Port.String())
		}
		t.Port = port
	}
	switch {
	case !isLabel(t.Namespace):
		return Target{}, fmt.Errorf("namespace %q must be the name of a namespace", t.Namespace)
	case !isLabel(t.Name):
		return Target{}, fmt.Errorf("service %q must be the name of a Service", t.Name)
	case t.Scheme != "" && !isScheme(t.Scheme):
		return Target{}, fmt.Errorf("protocol %q must be http or https; leave it out to expose both", t.Scheme)
	}
	return t, nil
}

// Len returns how many entries there are.
func (l List) Len() int { return len(l.entries) }

// Entries returns what is exposed: without Scheme or Port an entry means any.
func (l List) Entries() []Target { return slices.Clone(l.entries) }

// Exposes reports whether an entry names the Service with this port and scheme.
func (l List) Exposes(t Target) bool {
	return slices.ContainsFunc(l.entries, func(e Target) bool {
		return e.Namespace == t.Namespace && e.Name == t.Name && (e.Port == 0 || e.Port == t.Port) && (e.Scheme == "" || e.Scheme == t.Scheme)
	})
}

// Entry returns the entry that would expose the Service, for messages.
func (t Target) Entry() string {
	return fmt.Sprintf("{namespace: %s, service: %s, port: %d, protocol: %s}", t.Namespace, t.Name, t.Port, t.Scheme)
}
