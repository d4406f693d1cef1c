// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestNamesOfClusters(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster string
		want    string
	}{
		"a DNS label":              {"cluster1", ""},
		"digits and dashes":        {"1-a-2", ""},
		"nothing":                  {"", "has no name"},
		"upper case":               {"Cluster1", "cannot be the name"},
		"a dot":                    {"a.b", "cannot be the name"},
		"64 letters":               {strings.Repeat("a", 64), "cannot be the name"},
		"default":                  {"default", "reserved"},
		"the group of all agents":  {"managed-clusters", "reserved"},
		"a role of all agents":     {"work", "reserved"},
		"a namespace of kube":      {"kube-system", "reserved"},
		"a namespace of OCM":       {"open-cluster-management-agent", "reserved"},
		"a namespace of OpenShift": {"openshift-x", "reserved"},
		"a prefix that is not one": {"kubernetes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(tc.cluster)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			var e *fleet.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, fleet.Usage, e.Kind)
			require.Contains(t, e.Message+e.Cause, tc.want)
			require.NotEmpty(t, e.Fix)
		})
	}
}

func TestAnyTextBecomesAName(t *testing.T) {
	for text, want := range map[string]string{"kind-Spoke_1": "kind-spoke-1", "arn:aws:eks/x": "arn-aws-eks-x",
		"kube-x": "cluster-kube-x", "___": "cluster",
		"default": "cluster-default"} {
		require.Equal(t, want, safeName(text))
	}
}

func FuzzSafeName(f *testing.F) {
	for _, seed := range []string{"", "a", "kube-", strings.Repeat("x-", 80), "open-cluster-management", "ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		require.NoError(t, Check(safeName(text)), text)
	})
}
