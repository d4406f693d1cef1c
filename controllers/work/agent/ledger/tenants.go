// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strings"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Tenants returns the names, sorted, of the works of this agent other than except that
// have objects in a namespace and are not being deleted: a work that declares a namespace
// must not delete their objects with it. ending reports whether the hub is deleting a
// work, which its record may not show yet.
func (a *Applied) Tenants(namespace, except string, ending func(work string) bool) []string {
	var out []string
	for _, kept := range a.collection.List() {
		if kept.counts.Known == 0 {
			continue // it is another agent's, or on its way out
		}
		record := a.Get(kept.name)
		if record == nil || record.DeletionTimestamp != nil || record.Spec.ManifestWorkName == except || ending(record.Spec.ManifestWorkName) {
			continue
		}
		if slices.ContainsFunc(record.Status.AppliedResources, func(r workv1.AppliedManifestResourceMeta) bool { return r.Namespace == namespace }) {
			out = append(out, record.Spec.ManifestWorkName)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Inhabited returns the message that a namespace stays because of its tenants.
func Inhabited(namespace string, tenants []string) string {
	const named = 3
	who := strings.Join(tenants[:min(len(tenants), named)], ", ")
	if len(tenants) > named {
		who += " and others"
	}
	return "namespace " + namespace + " stays, because it holds objects of other works: " + who
}

// Ending reports whether the hub is deleting a work.
func (w *Works) Ending(name string) bool {
	known, there := w.Get(name)
	return there && known.Deleting
}
