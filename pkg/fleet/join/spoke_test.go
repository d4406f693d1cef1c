// SPDX-License-Identifier: Apache-2.0

package join

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestANameIsOnlyProposedToBeTakenWhereTheHubKnowsTheAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		known  string
		rejoin bool
		want   fleet.RemedyCode
	}{
		"an unknown address":                 {known: "https://other:6443", want: OtherName},
		"a longer address":                   {known: "https://spoke:64430", want: OtherName},
		"no address":                         {want: OtherName},
		"the address of the context":         {known: "https://spoke:6443", want: TakeName},
		"the address that it publishes":      {known: "https://spoke.example.com", want: TakeName},
		"a cluster that is joined elsewhere": {known: "https://spoke:6443", rejoin: true, want: TakeName},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{}
			if tc.known != "" {
				mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: tc.known}}
			}
			j := &join{
				Options: &Options{
					Name:   "c1",
					Rejoin: tc.rejoin,
					Spoke:  &fleet.Cluster{Context: "spoke", Config: &rest.Config{Host: "https://spoke:6443"}},
				},
				hub:       &fleet.Cluster{Context: "hub"},
				published: []operatorv1.ServerURL{{URL: "https://spoke.example.com"}},
			}
			rejoin := ""
			if tc.rejoin {
				rejoin = "true"
			}
			require.Equal(t, tc.want.With("cluster", "c1", "context", "spoke", "hub", "hub", "rejoin", rejoin), j.takeName(mc))
		})
	}
}
