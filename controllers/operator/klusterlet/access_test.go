// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// TestAConsentOfTheBootstrapKubeconfigIsAskedForAgainWhenTheRegistrationMovedOn: the consent
// dates from before the hub went away.
func TestAConsentOfTheBootstrapKubeconfigIsAskedForAgainWhenTheRegistrationMovedOn(t *testing.T) {
	broken := &kubeconfig.Config{}
	for name, brief := range map[string]bool{"bootstrap": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			a := &asker{clock: clocktesting.NewFakePassiveClock(now), brief: brief, about: "x", at: now, last: access.Answer{}}
			require.True(t, a.last.Granted())
			require.True(t, a.ask(t.Context(), "x", broken, access.Bootstrap()).Granted(), "asked a moment ago")
			a.forget()
			require.Equal(t, !brief, a.ask(t.Context(), "x", broken, access.Bootstrap()).Granted())
		})
	}
}
