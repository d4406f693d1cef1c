// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// TaintChange has taints to add, and those to remove: a taint without an effect stands for all
// that have its key.
type TaintChange struct {
	Add    []clusterv1.Taint
	Remove []clusterv1.Taint
}

// effects are the effects that a taint can have.
var effects = []clusterv1.TaintEffect{clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectPreferNoSelect, clusterv1.TaintEffectNoSelectIfNew}

// Effects are the names of the effects that a taint can have.
func Effects() []string {
	out := make([]string, 0, len(effects))
	for _, e := range effects {
		out = append(out, string(e))
	}
	return out
}

// maxTaintValue is the longest value of a taint.
const maxTaintValue = 1024

// Check returns why a change of taints cannot be made.
func (c *TaintChange) Check() error {
	if len(c.Add)+len(c.Remove) == 0 {
		return fleet.Misuse("no taint is named", "", fleet.Advice("for example gpu=true:NoSelect to add one, and gpu- to remove it"))
	}
	seen := map[clusterv1.Taint]bool{}
	for _, t := range slices.Concat(c.Add, c.Remove) {
		if reasons := validation.IsQualifiedName(t.Key); len(reasons) > 0 {
			return fleet.Misuse(fmt.Sprintf("%q cannot be the key of a taint", t.Key), strings.Join(reasons, "; "), fleet.Advice("for example gpu=true:NoSelect"))
		}
		if t.Effect != "" && !slices.Contains(effects, t.Effect) {
			return fleet.Misuse(fmt.Sprintf("%q is not an effect of a taint", t.Effect), "", fleet.Advice("use one of "+strings.Join(Effects(), ", ")))
		}
		if utf8.RuneCountInString(t.Value) > maxTaintValue || strings.ContainsFunc(t.Value, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fleet.Misuse(fmt.Sprintf("the value of the taint %s cannot be used", t.Key), "",
				fleet.Advice(fmt.Sprintf("use at most %d printable characters", maxTaintValue)))
		}
		if t.Key == clusterv1.TaintUnreachable || t.Key == clusterv1.TaintUnavailable {
			return fleet.Misuse("the taint "+t.Key+" is written by the hub", "it says whether a cluster reports, and would be put back", nil)
		}
		key := clusterv1.Taint{Key: t.Key, Effect: t.Effect}
		if seen[key] {
			return fleet.Misuse(fmt.Sprintf("the taint %s is named more than once", t.Key), "", fleet.Advice("leave one of them out"))
		}
		seen[key] = true
	}
	for _, t := range c.Add {
		if t.Effect == "" {
			return fleet.Misuse(fmt.Sprintf("the taint %s has no effect", t.Key), "", fleet.Advice("use one of "+strings.Join(Effects(), ", ")))
		}
	}
	return nil
}

// Taint adds and removes taints of clusters. Taints that are not named stay as they are, with
// the time that the hub gave them. A taint of the same key and effect with another value is
// refused without Overwrite.
func Taint(ctx context.Context, o EditOptions, c TaintChange) (fleet.ClusterChanges, error) {
	if err := c.Check(); err != nil {
		return fleet.ClusterChanges{}, err
	}
	return o.edit(ctx, func(u *unstructured.Unstructured) error {
		before, _, err := unstructured.NestedSlice(u.Object, "spec", "taints")
		if err != nil {
			return fmt.Errorf("reading the taints of %s: %w", u.GetName(), err)
		}
		after, err := c.applied(before, o.Overwrite, u.GetName())
		switch {
		case err != nil:
			return err
		case len(after) == 0:
			unstructured.RemoveNestedField(u.Object, "spec", "taints")
			return nil
		}
		return unstructured.SetNestedSlice(u.Object, after, "spec", "taints")
	})
}

// applied returns the taints of a cluster after the change.
func (c *TaintChange) applied(taints []any, overwrite bool, cluster string) ([]any, error) {
	is := func(item any, t clusterv1.Taint) bool {
		m, _ := item.(map[string]any)
		return m["key"] == t.Key && (t.Effect == "" || m["effect"] == string(t.Effect))
	}
	taints = slices.DeleteFunc(taints, func(item any) bool {
		return slices.ContainsFunc(c.Remove, func(t clusterv1.Taint) bool { return is(item, t) })
	})
	for _, t := range c.Add {
		wanted := map[string]any{"key": t.Key, "effect": string(t.Effect)}
		if t.Value != "" {
			wanted["value"] = t.Value
		}
		i := slices.IndexFunc(taints, func(item any) bool { return is(item, t) })
		if i < 0 {
			taints = append(taints, wanted)
			continue
		}
		value, _ := taints[i].(map[string]any)["value"].(string)
		switch {
		case value == t.Value:
		case overwrite:
			taints[i] = wanted
		default:
			return nil, exists(cluster, "taint", strings.TrimSuffix(t.Key+"="+value, "=")+":"+string(t.Effect))
		}
	}
	return taints, nil
}
