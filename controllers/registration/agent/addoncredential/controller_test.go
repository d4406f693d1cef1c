// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"context"
	"encoding/pem"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idle is a loop whose collections are empty and not running.
func idle(t *testing.T) *Controller {
	t.Helper()
	p := &Place{Secrets: NewSecrets(nil, "agent", "", logr.Discard())}
	c, err := New(Config{
		Cluster:    "c1",
		Endpoint:   hubConfig(),
		AddOns:     addon.NewAddOns(nil, "c1", logr.Discard()),
		Spoke:      p,
		Management: p,
		Namespace:  "agent",
		Clock:      clock.RealClock{},
	})
	require.NoError(t, err)
	return c
}

// TestAddOnsReachTheHubAsTheirAgentDoes checks the proxy, the certificate authority and the
// server name.
func TestAddOnsReachTheHubAsTheirAgentDoes(t *testing.T) {
	block := &pem.Block{Type: "CERTIFICATE", Bytes: []byte("authority")}
	hub := &kubeconfig.Config{
		ClusterEntry:  "hub",
		Server:        "https://hub:6443",
		ProxyURL:      "http://proxy:3128",
		TLSServerName: "hub.internal",
		CAData:        pem.EncodeToMemory(block),
	}
	p := &Place{Secrets: NewSecrets(nil, "agent", "", logr.Discard())}
	c, err := New(Config{
		Cluster:    "c1",
		Endpoint:   hub,
		AddOns:     addon.NewAddOns(nil, "c1", logr.Discard()),
		Spoke:      p,
		Management: p,
		Namespace:  "agent",
		Clock:      clock.RealClock{},
	})
	require.NoError(t, err)
	defer c.queue.Close()
	require.Len(t, c.kubeconfigs, 2, "one for each driver")
	for driver, raw := range c.kubeconfigs {
		var read clientcmdapi.Config
		require.NoError(t, yaml.Unmarshal(raw, &read))
		require.Len(t, read.Clusters, 1)
		at := read.Clusters[0].Cluster
		require.Equal(t, "http://proxy:3128", at.ProxyURL, driver)
		require.Equal(t, "hub.internal", at.TLSServerName, driver)
		require.Equal(t, hub.Server, at.Server, driver)
		require.Equal(t, hub.CAData, at.CertificateAuthorityData, driver)
	}
}

// TestMain detects what this loop leaves behind.
func TestALoopThatEndsBeforeItBeganLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, idle(t).Run(ctx), context.Canceled)
}

func TestAnAddonThatIsGoneWaitsForNoSecret(t *testing.T) {
	c := idle(t)
	defer c.queue.Close()
	c.setContested("web", true)
	_, err := c.Reconcile(t.Context(), reconcile.Key{Namespace: "c1", Name: "web"})
	require.NoError(t, err)
	require.Empty(t, c.contested, "objects created and removed by others leave nothing behind")
}
