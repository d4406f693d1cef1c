// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func TestLimitsOfConnectionsAreArguments(t *testing.T) {
	now := limits{profile: observe.Profile{MinVersion: "VersionTLS13"}}
	for _, c := range components {
		require.Contains(t, usual(func(r *rendering) { r.TLS = now.argsFor(nil) }).args(c), "--tls-min-version=VersionTLS13", c.name)
	}
	strict := usual(func(r *rendering) { r.TLS = []string{"--tls-min-version=VersionTLS13", "--tls-cipher-suites=A"} })
	live, err := typed.ToUnstructured(strict.deployment(components[0]))
	require.NoError(t, err)
	now.profile = observe.Profile{}
	require.Equal(t, []string{"--tls-min-version=VersionTLS12"}, now.argsFor(live), "what is read replaces what is there")
	now.err = errors.New("unreadable")
	require.Equal(t, strict.TLS, now.argsFor(live), "what cannot be read changes nothing that runs")
	require.Equal(t, []string{"--tls-min-version=VersionTLS12"}, now.argsFor(nil))
}
