// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestClaims(t *testing.T) {
	custom := func(n int) (out []Claim) {
		for i := range n {
			out = append(out, Claim{Name: fmt.Sprintf("custom%02d", n-i), Value: "v"})
		}
		return out
	}
	names := func(c []clusterv1.ManagedClusterClaim) (out []string) {
		for _, claim := range c {
			out = append(out, claim.Name)
		}
		return out
	}
	for name, tc := range map[string]struct {
		claims   []Claim
		limit    int
		suffixes []string
		want     []string
	}{
		"reserved come first, each part by name": {[]Claim{
			{Name: "b", Value: "v"},
			{Name: "platform.open-cluster-management.io", Value: "v"},
			{Name: "a", Value: "v"},
			{Name: "id.k8s.io", Value: "v"},
		}, 20, nil,
			[]string{"id.k8s.io", "platform.open-cluster-management.io", "a", "b"}},
		"ten custom with a limit of five": {
			custom(10),
			5,
			nil,
			[]string{"custom01", "custom02", "custom03", "custom04", "custom05"},
		},
		"a reserved suffix does not count": {
			append(custom(6), Claim{Name: "x.mine.io", Value: "v"}),
			5,
			[]string{".mine.io"},
			[]string{"x.mine.io", "custom01", "custom02", "custom03", "custom04", "custom05"},
		},
		"a value that is too long harms nothing": {
			[]Claim{{
				Name:    "a",
				TooLong: true,
			}, {
				Name:  "b",
				Value: "",
			}, {
				Name:  "c",
				Value: "v",
			}},
			20,
			nil,
			[]string{"c"},
		},
		"all removed: the list is cleared": {nil, 20, nil, nil},
		"a limit of zero leaves only reserved ones": {
			[]Claim{{Name: "a", Value: "v"}, {Name: "product.open-cluster-management.io", Value: "v"}},
			0,
			nil,
			[]string{"product.open-cluster-management.io"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(accepted())
			s.Cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "old", Value: "v"}}
			s.Claims, s.MaxClaims, s.ReservedSuffixes = tc.claims, tc.limit, tc.suffixes
			require.Equal(t, tc.want, names(after(t, s).Status.ClusterClaims))
			s.ClaimsKnown = false
			require.Equal(t, []string{"old"}, names(after(t, s).Status.ClusterClaims))
		})
	}
}

func TestAPropertyStandsForTheClaimOfItsName(t *testing.T) {
	s := healthy(accepted())
	s.Claims = []Claim{{Name: "a", Value: "claim"}, {Name: "b", Value: "claim"}}
	s.Properties = []Claim{{Name: "b", Value: "property"}, {Name: "id.k8s.io", Value: "property"}}
	require.Equal(t, []clusterv1.ManagedClusterClaim{
		{Name: "id.k8s.io", Value: "property"}, {Name: "a", Value: "claim"}, {Name: "b", Value: "property"},
	}, after(t, s).Status.ClusterClaims)
}

func TestWhatCannotBeReportedIsNamed(t *testing.T) {
	long := Claim{Name: "long", TooLong: true}
	for name, tc := range map[string]struct {
		claims []Claim
		limit  int
		reason string
		words  []string
	}{
		"a value that is too long": {
			[]Claim{long, {Name: "a", Value: "v"}},
			20,
			clusterv1.ReasonClaimsInvalid,
			[]string{"claims long cannot be reported", "1 to 1024 characters"},
		},
		"an empty value": {
			[]Claim{{Name: "none"}},
			20,
			clusterv1.ReasonClaimsInvalid,
			[]string{"claims none cannot"},
		},
		"a name that is too long": {
			[]Claim{{Name: strings.Repeat("n", 254), Value: "v"}},
			20,
			clusterv1.ReasonClaimsInvalid,
			[]string{"cannot be reported"},
		},
		"more than the limit": {
			[]Claim{{Name: "b", Value: "v"}, {Name: "a", Value: "v"}, {Name: "c", Value: "v"}},
			1,
			clusterv1.ReasonClaimsTruncated,
			[]string{"claims b, c are left out", "at most 1 custom claims"},
		},
		"both": {
			[]Claim{long, {Name: "a", Value: "v"}, {Name: "b", Value: "v"}},
			1,
			clusterv1.ReasonClaimsInvalid,
			[]string{"claims long", "claims b are left out"},
		},
		"a property that is too long": {
			[]Claim{{Name: "long", Value: "short"}},
			20,
			clusterv1.ReasonClaimsInvalid,
			[]string{"claims long"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(accepted())
			s.Claims, s.MaxClaims = tc.claims, tc.limit
			if name == "a property that is too long" {
				s.Properties = []Claim{long}
			}
			p := Decide(s)
			s.Cluster = p.Object.(*clusterv1.ManagedCluster)
			got := apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionClaimsReported)
			require.NotNil(t, got)
			require.Equal(t, metav1.ConditionFalse, got.Status)
			require.Equal(t, tc.reason, got.Reason)
			for _, words := range tc.words {
				require.Contains(t, got.Message, words)
			}
			require.Equal(
				t, reconcile.Event{Type: "Warning", Reason: tc.reason, Message: got.Message, Namespace: "c1"},
				p.Events[0],
			)

			again := Decide(s)
			require.Empty(t, again.Events, "it is reported once")
			require.Equal(t, s.Cluster, again.Object)
			s.Claims, s.Properties = nil, nil
			require.Nil(
				t, apimeta.FindStatusCondition(after(t, s).Status.Conditions, clusterv1.ConditionClaimsReported),
				"no condition when everything is reported",
			)
		})
	}
}

func TestAThousandClaimsTooManyAreOneWord(t *testing.T) {
	s := healthy(accepted())
	for i := range 100 {
		s.Claims = append(s.Claims, Claim{Name: fmt.Sprintf("c%04d", i), Value: "v"})
	}
	s.Cluster = after(t, s)
	message := apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionClaimsReported).Message
	require.Contains(t, message, "claims c0020, c0021, c0022, c0023, c0024 and more are left out")
	for i := range 1000 {
		s.Claims = append(s.Claims, Claim{Name: fmt.Sprintf("d%04d", i), Value: "v"})
	}
	again := Decide(s)
	require.Equal(t, s.Cluster, again.Object, "another thousand cause no write")
	require.Empty(t, again.Events)
}

func TestReservedClaimsCannotMakeTheStatusTooLarge(t *testing.T) {
	s := healthy(accepted())
	s.ReservedSuffixes = []string{".mine"}
	for i := range 1000 {
		s.Claims = append(s.Claims, Claim{Name: fmt.Sprintf("c%04d.mine", i), Value: strings.Repeat("x", 1024)})
	}
	c := after(t, s)
	require.Len(t, c.Status.ClusterClaims, maxClaims/(len("c0000.mine")+1024))
	require.Contains(
		t, apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionClaimsReported).Message, "262144 bytes",
	)
}

func TestWhatIsKeptOfAClaim(t *testing.T) {
	object := func(value string, labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"name":   "n",
			"labels": labels,
		}, "spec": map[string]any{
			"value": value,
		}}}
	}
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   Claim
		kept   bool
	}{
		"a value": {object("v", nil), Claim{Name: "n", Value: "v"}, true},
		"1024 characters of several bytes": {
			object(strings.Repeat("ä", 1024), nil),
			Claim{Name: "n", Value: strings.Repeat("ä", 1024)},
			true,
		},
		"1025 characters": {
			object(strings.Repeat("x", 1025), nil),
			Claim{Name: "n", TooLong: true},
			true,
		},
		"hidden by the label, whatever its value": {
			object("v", map[string]any{"open-cluster-management.io/spoke-only": "false"}),
			Claim{},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, kept := keepClaim(tc.object)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.kept, kept)
		})
	}
}
