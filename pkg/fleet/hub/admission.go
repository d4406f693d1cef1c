// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
)

// maxFaults bounds the webhooks that are reported one by one.
const maxFaults = 2

// CheckAdmission returns which webhooks of a hub are missing or do not answer, and how many
// were probed. With others, the operator of another distribution runs the hub.
func CheckAdmission(ctx context.Context, hub *fleet.Cluster, others bool) ([]Fault, int, error) {
	probes := probesOf(others)
	faults, err := configuredAdmission(ctx, hub, others, probes)
	if err != nil {
		return nil, 0, err
	}
	known := func(name string) bool {
		return slices.ContainsFunc(faults, func(f Fault) bool { return f.name == name })
	}
	asked, err := askAdmission(ctx, hub, slices.DeleteFunc(slices.Clone(probes), func(p probe) bool { return known(p.name) }))
	if err != nil {
		return nil, 0, err
	}
	all := len(probes)
	if !others {
		all += len(unaskable)
	}
	return foldFaults(append(faults, asked...), len(probes), all), len(probes), nil
}

// foldFaults folds many faults into one when they concern every webhook that there is or that
// could be probed. Webhooks that could not be probed are reported only when there are no other
// faults: one webhook that does not answer keeps others from being probed.
func foldFaults(found []Fault, asked, all int) []Fault {
	var broken, unasked []Fault
	for _, f := range found {
		if f.Unasked {
			unasked = append(unasked, f)
		} else {
			broken = append(broken, f)
		}
	}
	switch {
	case len(broken) > maxFaults:
		var names []string
		for _, f := range broken {
			names = append(names, f.name)
		}
		return []Fault{{Title: fmt.Sprintf("%d of %d webhooks do not answer", len(broken), all),
			Cause: fleet.OrElse(broken[0].Cause, broken[0].Title) + "; " + strings.Join(names, ", ")}}
	case len(broken) > 0:
		return broken
	case len(unasked) > 0:
		return []Fault{{Title: fmt.Sprintf("%d of %d webhooks could not be probed", len(unasked), asked), Cause: unasked[0].Cause, Unasked: true}}
	}
	return nil
}

// configuredAdmission returns which of the webhooks have no configuration, or one without a
// CA: that says more than their silence.
func configuredAdmission(ctx context.Context, hub *fleet.Cluster, others bool, probes []probe) ([]Fault, error) {
	wanted := func(name string) bool {
		return (!others && slices.Contains(unaskable, name)) || slices.ContainsFunc(probes, func(p probe) bool { return p.name == name })
	}
	validating, mutating := teardown.HubAdmission()
	var out []Fault
	for _, part := range []struct {
		q     fleet.Query
		names []string
	}{{fleet.Query{Resource: fleet.ValidatingHooks}, validating}, {fleet.Query{Resource: fleet.MutatingHooks}, mutating}} {
		items, err := fleet.ListAll(ctx, hub, part.q)
		if err != nil {
			return nil, fleet.Explain("listing "+part.q.Resource.Resource, hub, err)
		}
		for _, name := range part.names {
			i := slices.IndexFunc(items, func(u unstructured.Unstructured) bool { return u.GetName() == name })
			title := part.q.Resource.Resource + "/" + name
			switch {
			case !wanted(name):
			case i < 0:
				out = append(out, Fault{name: name, Title: title + " is missing", Cause: "what it would refuse is admitted"})
			case !namesCA(&items[i]):
				out = append(out, Fault{name: name, Title: title + " has no CA", Cause: "its calls fail"})
			}
		}
	}
	return out, nil
}

// namesCA reports whether every webhook of a configuration names its CA.
func namesCA(u *unstructured.Unstructured) bool {
	hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
	return len(hooks) > 0 && !slices.ContainsFunc(hooks, func(h any) bool {
		m, _ := h.(map[string]any)
		ca, _, _ := unstructured.NestedString(m, "clientConfig", "caBundle")
		return ca == ""
	})
}
