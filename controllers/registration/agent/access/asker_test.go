// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// TestAConsentOfTheBootstrapKubeconfigIsAskedForAgainWhenTheRegistrationMovedOn: the consent
// dates from before the hub went away.
func TestAConsentOfTheBootstrapKubeconfigIsAskedForAgainWhenTheRegistrationMovedOn(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	broken := &kubeconfig.Config{}
	for name, brief := range map[string]bool{"bootstrap": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			a := &Asker{Clock: clocktesting.NewFakePassiveClock(now), Brief: brief, about: "x", at: now, last: Answer{}}
			require.True(t, a.last.Granted())
			require.True(t, a.Ask(t.Context(), "x", broken, Bootstrap()).Granted(), "asked a moment ago")
			a.Forget()
			require.Equal(t, !brief, a.Ask(t.Context(), "x", broken, Bootstrap()).Granted())
		})
	}
}
