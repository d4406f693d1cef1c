// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// TestAHostingClusterIsNamedByWhoMayCreateAddOnsThere, and by nobody else.
func TestAHostingClusterIsNamedByWhoMayCreateAddOnsThere(t *testing.T) {
	hosted := func(annotations map[string]string) *addonv1alpha1.ManagedClusterAddOn {
		return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", Annotations: annotations}}
	}
	on := func(host string) *addonv1alpha1.ManagedClusterAddOn {
		return hosted(map[string]string{addonv1alpha1.AnnotationHostingClusterName: host})
	}
	going := on("c2")
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"f"}
	may := []string{"create managedclusteraddons/"}
	for name, tc := range map[string]struct {
		old, now *addonv1alpha1.ManagedClusterAddOn
		rights   []string
		broken   error
		code     int32
		// about is the namespace that is asked about; empty if nothing is.
		about string
	}{
		"no cluster": {
			now: hosted(nil),
		},
		"an empty name": {
			now: on(""),
		},
		"its own cluster": {
			now: on("c1"),
		},
		"another cluster": {
			now:   on("c2"),
			code:  403,
			about: "c2",
		},
		"another cluster, with the right": {
			now:    on("c2"),
			rights: may,
			about:  "c2",
		},
		"a stored name": {
			old: on("c2"),
			now: on("c2"),
		},
		"another than the stored name": {
			old:   on("c2"),
			now:   on("c3"),
			code:  403,
			about: "c3",
		},
		"no name any more": {
			old: on("c2"),
			now: hosted(nil),
		},
		"an add-on that goes": {
			old: on("c1"),
			now: going,
		},
		"a hub that cannot be asked": {
			now:    on("c2"),
			broken: errors.New("no answer"),
			code:   500,
			about:  "c2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &stated{rights: tc.rights, broken: tc.broken}
			var old any
			if tc.old != nil {
				old = tc.old
			}
			text := ""
			if tc.code == 403 {
				text = `user "` + person.Username + `" cannot create managedclusteraddons in namespace ` + tc.about
			}
			check(t, send(t, server(h, all), webhook.PathValidateAddOn, old, tc.now, person), tc.code, text)
			if tc.about == "" {
				require.Empty(t, h.about)
				return
			}
			require.Len(t, h.about, 1)
			require.Equal(t, tc.about, h.about[0].Namespace)
			require.Equal(t, "addon.open-cluster-management.io", h.about[0].Group)
			require.Equal(t, person, h.asked[0])
		})
	}
}
