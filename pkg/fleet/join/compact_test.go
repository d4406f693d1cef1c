// SPDX-License-Identifier: Apache-2.0

package join

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
)

func TestOnlyAnAgentWhereAJoinPutsItBecomesOneProcess(t *testing.T) {
	spoke, err := fleet.Connect(&rest.Config{Host: "https://c1:6443"}, "c1")
	require.NoError(t, err)
	const elsewhere = "it runs in namespace open-cluster-management-mine"
	for name, tc := range map[string]struct {
		layout    string
		mode      operatorv1.InstallMode
		namespace string
		want      string
	}{
		"where a join puts it":                   {LayoutCompact, "", "", ""},
		"there by name":                          {LayoutCompact, "", "open-cluster-management-agent", ""},
		"elsewhere":                              {LayoutCompact, "", "open-cluster-management-mine", elsewhere},
		"elsewhere, and the layout is not asked": {"", "", "open-cluster-management-mine", ""},
		"hosted, which is refused by its mode":   {LayoutCompact, operatorv1.InstallModeHosted, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := &operatorv1.Klusterlet{Spec: operatorv1.KlusterletSpec{Namespace: tc.namespace,
				DeployOption: operatorv1.KlusterletDeployOption{Mode: tc.mode}}}
			k.Name = operatorv1.DefaultKlusterletName
			j := &join{Options: &Options{Klusterlet: k.Name, Layout: tc.layout, Spoke: spoke}, before: &member.State{Klusterlet: k}}
			err := j.checkPlace()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
	hosted := &operatorv1.Klusterlet{}
	hosted.Spec.DeployOption.Mode = operatorv1.InstallModeHosted
	j := &join{Options: &Options{Klusterlet: "edge", Spoke: spoke, Layout: LayoutCompact}, before: &member.State{Klusterlet: hosted}}
	require.ErrorContains(t, j.checkMode(t.Context()), "its agent cannot move to another cluster")
	require.ErrorContains(t, (&Options{Layout: LayoutCompact, Mode: operatorv1.InstallModeHosted}).checkLayout(), "a hosted agent has no compact layout")
}
