// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strings"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Tenants are the works of this agent that have objects in a namespace and are not
// ending, sorted by name, but for one: who declares a namespace does not take along what
// they keep in it. ending tells of a work whether the hub is deleting it, which its
// record may not show yet.
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

// Inhabited says that a namespace stays because of its tenants.
func Inhabited(namespace string, tenants []string) string {
	const named = 3
	who := strings.Join(tenants[:min(len(tenants), named)], ", ")
	if len(tenants) > named {
		who += " and others"
	}
	return "namespace " + namespace + " stays, because it holds objects of other works: " + who
}

// Ending tells whether the hub is deleting a work.
func (w *Works) Ending(name string) bool {
	known, there := w.Get(name)
	return there && known.Deleting
}
