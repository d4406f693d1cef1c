// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// ManifestWorkKind is the kind of works.
var ManifestWorkKind = workv1.GroupVersion.WithKind("ManifestWork")

// The watched resources; add-ons at their storage version, so that nothing depends on
// conversion.
var (
	addons = reconcile.ResourceOf(addonhealth.Kind)
	works  = reconcile.ResourceOf(ManifestWorkKind)
)

// defaultOrder is what is removed with a cluster unless another order is configured.
func defaultOrder() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{addons, works}
}

// ParseOrder parses entries of the form group/version/resource; an entry of the core group
// begins with a slash. Invalid entries are left out and returned as errors that say what is
// wrong.
func ParseOrder(entries []string) (order []schema.GroupVersionResource, bad []error) {
	for _, entry := range entries {
		parts := strings.Split(entry, "/")
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			bad = append(bad, fmt.Errorf("%q is not of the form group/version/resource, for example work.open-cluster-management.io/v1/manifestworks", entry))
			continue
		}
		r := schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
		if r.GroupResource() == addons.GroupResource() {
			r = addons
		}
		if slices.Contains(order, r) {
			bad = append(bad, fmt.Errorf("%q is listed twice", entry))
			continue
		}
		order = append(order, r)
	}
	return order, bad
}
