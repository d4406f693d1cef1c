// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{
			"web",
			"web",
			true,
		}, {
			"web",
			"webs",
			false,
		}, {
			"*",
			"",
			true,
		}, {
			"*",
			"x",
			true,
		}, {
			"w*",
			"web",
			true,
		}, {
			"w*",
			"aw",
			false,
		},
		{"*b", "web", true}, {"a*b*c", "axbxc", true}, {"a*b*c", "axxc", false}, {"aa*aa", "aaa", false}, {"", "x", false},
	} {
		require.Equal(t, tc.want, like(tc.pattern, tc.text), "%s %s", tc.pattern, tc.text)
	}
	at := workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "n", Name: "web"}
	for pattern, want := range map[workv1.ResourceIdentifier]bool{
		{Group: "apps", Resource: "deployments", Namespace: "*", Name: "w*"}: true,
		{Group: "apps", Resource: "daemonsets", Namespace: "*", Name: "w*"}:  false,
		{Resource: "deployments", Namespace: "*", Name: "w*"}:                false,
		{Group: "apps", Resource: "deployments", Namespace: "m", Name: "w*"}: false,
	} {
		require.Equal(t, want, Matches(pattern, at), pattern)
	}
}
