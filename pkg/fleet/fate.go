// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Fate is what an operation that changes who runs something will do to an object.
type Fate string

// The fates.
const (
	Kept     Fate = "kept"
	Replaced Fate = "replaced"
	Removed  Fate = "removed"
	Added    Fate = "added"
	Restored Fate = "restored"
	Stopped  Fate = "stopped"
)

// Planned is one object and its fate.
type Planned struct {
	Object *unstructured.Unstructured
	Fate   Fate
	// Note says why, or how many there are.
	Note string
}

// Name returns the object as kubectl names it, without a name for all objects of a kind.
func (p Planned) Name() string { return ObjectName(p.Object) }

// MarshalJSON writes the name of the object and its fate.
func (p Planned) MarshalJSON() ([]byte, error) {
	out := map[string]any{"object": p.Name(), "fate": p.Fate}
	if ns := p.Object.GetNamespace(); ns != "" {
		out["namespace"] = ns
	}
	if p.Note != "" {
		out["note"] = p.Note
	}
	return json.Marshal(out)
}

// FateOf returns the fate that applying an object means.
func FateOf(a Action) Fate {
	switch a {
	case Created:
		return Added
	case Unchanged:
		return Kept
	case Deleted:
		return Removed
	}
	return Replaced
}

// PlannedOf returns what applying objects means for each.
func PlannedOf(changes []Change) []Planned {
	out := make([]Planned, 0, len(changes))
	for _, c := range changes {
		out = append(out, Planned{Object: Reference(c.Object), Fate: FateOf(c.Action)})
	}
	return out
}

// PlannedNames returns the names of planned objects.
func PlannedNames(items []Planned) []string {
	out := make([]string, 0, len(items))
	for _, p := range items {
		out = append(out, p.Name())
	}
	return out
}
