// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// here returns the state of an add-on from a template on each cluster: the content of its
// work, its rights, and the reasons of its conditions.
func (f *fan) here(t *testing.T) string {
	t.Helper()
	var out []string
	for _, c := range f.clusters {
		line := f.deployed(t, c) + "/" + strings.Repeat("right ", len(f.bound(t, c)))
		if a := f.instance(t, c); a != nil {
			for _, kind := range []string{addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ConditionManifestApplied} {
				if said := apimeta.FindStatusCondition(a.Status.Conditions, kind); said != nil {
					line += said.Reason + " "
				}
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// TestTheTemplateLoopsMayDieAfterEveryWrite ends the loops after every write: when an
// add-on from a template is new, when its agents have answered, when its template
// changes, and when a cluster leaves. The result is always the same as without faults.
func TestTheTemplateLoopsMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	f := &fan{namespace: "brittle", clusters: []string{"brittle-0", "brittle-1"}}
	s, config := served(t, append([]string{"brittle"}, f.clusters...)...)
	f.scene = s
	for _, name := range f.clusters {
		mc := cluster(name)
		mc.Spec.HubAcceptsClient = true
		settled(t, func() error { return create(f.dyn, mc) })
	}
	f.roles(t)
	rights := `{"type":"KubeClient","kubeClient":{"hubPermissions":[{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"brittle"}}]}}`
	uids := map[string]types.UID{}
	dying := func(what string, atLeast int, want ...string) {
		t.Helper()
		done := func() bool { return f.here(t) == strings.Join(want, "\n") }
		lives := 0
		for ; !done(); lives++ {
			require.Less(t, lives, 60, "%s does not converge:\n%s", what, f.here(t))
			mortal, process := faults.StopAfter(config, 1)
			addOnLoops.run(t, mortal, process.Died(), done)
			for _, c := range f.clusters {
				if u, err := f.dyn.Resource(works).Namespace(c).Get(t.Context(), f.work(), metav1.GetOptions{}); err == nil {
					before, was := uids[c]
					require.True(t, !was || before == u.GetUID(), "%s: the work of %s was made twice", what, c)
					uids[c] = u.GetUID()
				}
			}
		}
		t.Logf("%s: %d lives of one write", what, lives)
		require.GreaterOrEqual(t, lives, atLeast, what)
	}

	f.template(t, "one", rights)
	f.place(t, "p", f.clusters...)
	f.offerTemplate(t, `{"type":"Placements","placements":[{"namespace":"brittle","name":"p"}]}`)
	dying("a new add-on", 2*4, "one brittle-0 /right SetPermissionApplied ", "one brittle-1 /right SetPermissionApplied ")
	f.applied(t, "brittle-0")
	f.applied(t, "brittle-1")
	dying("its agents answer", 2,
		"one brittle-0 /right SetPermissionApplied AddonManifestApplied ", "one brittle-1 /right SetPermissionApplied AddonManifestApplied ")
	f.template(t, "two", rights)
	dying("another template", 2*2,
		"two brittle-0 /right SetPermissionApplied AddonManifestApplied ", "two brittle-1 /right SetPermissionApplied AddonManifestApplied ")
	f.template(t, "two", "")
	dying("no rights any more", 2*2,
		"two brittle-0 /NilRegistration AddonManifestApplied ", "two brittle-1 /NilRegistration AddonManifestApplied ")

	// The Event about the questionable template may be written again.
	require.Empty(t, addOnLoops.rest(t, config, "/events"), "a start on what is done writes nothing")
}
