// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	workagent "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
)

func TestAStoppedAgentLeavesNothingRunning(t *testing.T) {
	connections := []goleak.Option{
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("golang.org/x/net/internal/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http/internal/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http.(*http2clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}
	s := newScene(t)
	running := goleak.IgnoreCurrent()
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	stop()
	s.nothingRuns(append(connections, running)...)

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, workagent.Run(ended, s.config))
	s.nothingRuns(append(connections, running)...)
}

// nothingRuns waits until there are no goroutines except for those in but.
func (s *scene) nothingRuns(but ...goleak.Option) {
	s.t.Helper()
	s.eventually(func() bool { return goleak.Find(but...) == nil }, "an agent that has ended leaves goroutines")
}

func TestAnAgentThatIsNotToldEnoughSaysSo(t *testing.T) {
	s := newScene(t)
	for want, spoil := range map[string]func(*workagent.Config){
		"a client configuration for the hub":           func(c *workagent.Config) { c.Hub = nil },
		"the cluster name and the hub hash are needed": func(c *workagent.Config) { c.HubHash = "" },
		"a clock is needed":                            func(c *workagent.Config) { c.Clock = nil },
	} {
		cfg := s.config
		spoil(&cfg)
		require.ErrorContains(t, workagent.Run(t.Context(), cfg), want)
	}
}
