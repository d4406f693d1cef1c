// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

func TestEachLoopIsListed(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1beta1.AddToScheme, selection.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	m, err := manager.New(
		manager.Options{Config: &rest.Config{Host: "http://127.0.0.1"}, Scheme: scheme, Clock: clock.RealClock{}},
	)
	require.NoError(t, err)
	Register(m, Config{Clock: clock.RealClock{}})
	require.ElementsMatch(t, []string{
		"addon.install", "addon.progress", "addon.token", "addon.template.registration", "addon.template.deploy",
		"addon.template.request",
	}, m.Loops())
}
