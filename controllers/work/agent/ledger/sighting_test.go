// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestAnOlderStateOfAWorkIsNoticed(t *testing.T) {
	for name, tc := range map[string]struct {
		noted      string
		uid        types.UID
		generation int64
		deleting   bool
		version    string
		want       string
	}{
		"nothing is noted":                  {"", "u", 1, false, "5", ""},
		"the recorded state cannot be read": {"u one 5", "u", 1, false, "5", ""},
		"the same state":                    {"u 3 100", "u", 3, false, "100", ""},
		"a later one":                       {"u 3 100", "u", 4, false, "1000", ""},
		"an older generation":               {"u 3 100", "u", 2, false, "1000", "its generation is 2, and 3 was applied"},
		"an older resourceVersion": {
			"u 3 100",
			"u",
			3,
			false,
			"99",
			"its resourceVersion is 99, and 100 was applied",
		},
		"another work of the name": {
			"u 3 100",
			"v",
			9,
			false,
			"1000",
			"it is not the work that was applied and never deleted here",
		},
		"deleted as it was applied":    {"u 3 100", "u", 4, true, "101", ""},
		"an older one that is deleted": {"u 3 100", "u", 3, true, "101", "its generation is 2, and 3 was applied"},
	} {
		t.Run(name, func(t *testing.T) {
			record := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{workv1.AnnotationLastSeen: tc.noted}}}
			work := Work{UID: tc.uid, Generation: tc.generation, Deleting: tc.deleting, Version: tc.version}
			require.Equal(t, tc.want, WentBack(record, work.Sighting()))
		})
	}
}

func TestTheNewestVersionThatRecordsOfThisHubNoteCounts(t *testing.T) {
	var h highest
	for _, r := range []struct{ hub, noted string }{{
		"h",
		"u 1 90",
	}, {
		"h",
		"u 1 100",
	}, {
		"h",
		"u 1 95",
	}, {
		"other",
		"u 1 999",
	}, {
		"h",
		"broken",
	}} {
		record := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{workv1.AnnotationLastSeen: r.noted}}}
		record.Spec.HubHash = r.hub
		h.observe(Identity{HubHash: "h"}, record)
	}
	require.Equal(t, "100", h.get())
}
