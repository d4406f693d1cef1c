// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// Name identifies the loop.
const Name = "cluster.tunnel"

const (
	// firstPause and lastPause are the shortest and the longest pause before the next attempt.
	firstPause, lastPause = time.Second, 30 * time.Second
	// steady is how long a tunnel must have lived for the next pause to be the shortest again.
	steady = time.Minute
	// dialTimeout is how long the hub's answer may take.
	dialTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer that refuses the tunnel, in bytes.
	maxAnswer = 4 << 10
)

// Config configures the loop.
type Config struct {
	// Hub is the address of the hub's API server, and Upgrades sends requests to it with the
	// agent's certificate over HTTP/1.1.
	Hub      string
	Upgrades http.RoundTripper
	// Spoke is the managed cluster.
	Spoke *rest.Config
	// Cluster is its name on the hub.
	Cluster string
	// Services leads to Services of the managed cluster; nil if the agent runs on another cluster,
	// where their addresses mean something else.
	Services *Services
	// Version and UserAgent are those of this program.
	Version, UserAgent string
	// Clock measures the pauses and the life of the tunnel.
	Clock clock.WithTicker
	// Random spreads the pauses of many agents; it returns a number from 0 to 1.
	Random func() float64
	// Log receives what happens to the tunnel.
	Log logr.Logger
}

// Controller is the loop.
type Controller struct{ Config }

// New returns the loop.
func New(c Config) *Controller { return &Controller{c} }

// Run keeps the tunnel open until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	handler, err := newHandler(c.Config)
	if err != nil {
		return fmt.Errorf("connecting to the managed cluster for the tunnel: %w", err)
	}
	defer handler.close()
	var watching sync.WaitGroup
	defer watching.Wait()
	if handler.services != nil {
		watching.Go(func() { handler.services.exposed.run(ctx) })
	}
	c.keep(ctx, handler)
	return nil
}

// keep opens one tunnel after the other until ctx is done.
func (c *Controller) keep(ctx context.Context, handler *handler) {
	told := ""
	for pause := firstPause; ctx.Err() == nil; pause = min(pause*2, lastPause) {
		began := c.Clock.Now()
		err := c.once(ctx, handler)
		if ctx.Err() != nil {
			return
		}
		if c.Clock.Now().Sub(began) >= steady {
			pause, told = firstPause, ""
		}
		if text := err.Error(); text != told { // once for each reason, not for each attempt
			told = text
			c.Log.Info("There is no tunnel to the hub; trying again", "error", text)
		}
		// Half to all of the pause: after an outage, agents do not come all at once.
		wait := pause/2 + time.Duration(c.Random()*float64(pause/2))
		select {
		case <-ctx.Done():
		case <-c.Clock.After(wait):
		}
	}
}

// once opens a tunnel and serves it until it ends. It always returns why.
func (c *Controller) once(ctx context.Context, handler *handler) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	hello := tunnel.Hello{Program: c.Version, Serves: []string{connectv1alpha1.ServesServices, connectv1alpha1.ServesAccounts}}
	l, answer, err := tunnel.Offer(ctx, conn, hello, c.Clock)
	if err != nil {
		return err
	}
	c.Log.Info("Tunnel to the hub opened", "hubVersion", answer.Program)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer func() { _ = l.Close() }()
	return handler.serve(l)
}

// dial asks the hub to turn a connection into a tunnel.
func (c *Controller) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := c.Clock.NewTimer(dialTimeout)
	defer timer.Stop()
	answered := make(chan struct{})
	defer close(answered)
	go func() {
		select {
		case <-timer.C():
			cancel()
		case <-answered:
		}
	}()
	url := strings.TrimSuffix(c.Hub, "/") + connectv1alpha1.PathTunnels + c.Cluster + connectv1alpha1.SuffixProxy
	request, err := http.NewRequestWithContext(asking, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", tunnel.Protocol)
	request.Header.Set("User-Agent", c.UserAgent)
	answer, err := c.Upgrades.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("asking the hub for a tunnel: %w", err)
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		if conn, ok := answer.Body.(io.ReadWriteCloser); ok && answer.Header.Get("Upgrade") == tunnel.Protocol {
			return conn, nil
		}
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, refusedBy(answer)
}

// refusedBy says why the hub does not open a tunnel, and what helps.
func refusedBy(answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("the hub serves no tunnels: the gate %s of its ClusterManager is off", connectv1alpha1.GateClusterProxy)
	case http.StatusSwitchingProtocols:
		return errors.New("what is between this cluster and the hub switched to another protocol")
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // what was read is told
	return fmt.Errorf("the hub answered %s: %s", answer.Status, excerpt.Of(string(text), maxMessage))
}
