// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idle is a loop whose collections are empty and not run by anybody.
func idle(t *testing.T) *Controller {
	t.Helper()
	p := &Place{Secrets: NewSecrets(nil, "agent", logr.Discard())}
	c, err := New(Options{
		Cluster: "c1", Endpoint: hubConfig(), AddOns: addon.NewAddOns(nil, "c1", logr.Discard()), Spoke: p, Management: p,
		Namespace: "agent", Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	return c
}

// TestMain sees what this loop leaves behind.
func TestALoopThatEndsBeforeItBeganLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, idle(t).Run(ctx), context.Canceled)
}

func TestAnAddonThatIsGoneWaitsForNoSecret(t *testing.T) {
	c := idle(t)
	defer c.queue.Close()
	c.contend("web", true)
	_, err := c.reconcile(t.Context(), reconcile.Key{Namespace: "c1", Name: "web"})
	require.NoError(t, err)
	require.Empty(t, c.contested, "nothing may grow with what others make and remove")
}
