// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestTheNearestNameIsTheOneThatIsMeant(t *testing.T) {
	names := []string{"init", "status", "token", "clean"}
	for word, want := range map[string]string{"statsu": "status", "ini": "init", "tokn": "token", "xyz": "", "cl": ""} {
		require.Equal(t, want, Nearest(word, names), word)
	}
}

func TestWhatANameThatNothingHasMayMean(t *testing.T) {
	have := []string{"cluster1/web", "cluster2/web", "shop/api", "default/everywhere"}
	for name, want := range map[string]string{
		"wbe":                "did you mean \"web\"?",
		"web":                "there is cluster1/web, cluster2/web",
		"default/api":        "there is shop/api",
		"default/everywere":  "did you mean \"everywhere\"?",
		"shop/everywere":     "",
		"something-else":     "",
		"default/everywhere": "there is default/everywhere",
	} {
		require.Equal(t, want, hintFor(name, have), name)
	}
	require.ErrorIs(t, NoCluster("x", &fleet.Cluster{Context: "hub", Config: &rest.Config{}}), ErrNotFound)
	require.False(t, errors.Is(errors.New("x"), ErrNotFound))
}
