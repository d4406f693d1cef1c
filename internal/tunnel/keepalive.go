// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"k8s.io/utils/clock"
)

const (
	// pingEvery is how often the hub pings.
	pingEvery = 30 * time.Second
	// deadAfter is how long the other side may be silent.
	deadAfter = 60 * time.Second
	// helloTimeout is how long the Hellos may take.
	helloTimeout = 10 * time.Second
	// writeTimeout is how long a write may wait for a stalled connection.
	writeTimeout = 30 * time.Second
	// closeTimeout is how long a closed stream waits for the other side to close it, too.
	closeTimeout = 10 * time.Second
	// hubWindow and agentWindow are how many bytes of a stream each side buffers for a slow
	// reader, and so how many it gets in one round trip: answers go to the hub, which has more
	// memory. 1 MiB fills 100 Mbit/s over 40 ms.
	hubWindow, agentWindow = 1 << 20, 256 << 10
)

// config is that of the multiplexer. backlog limits the streams that the other side has not
// acknowledged, or that are not accepted yet; window is this side's.
func config(backlog int, window uint32) *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog, c.EnableKeepAlive, c.LogOutput = backlog, false, io.Discard
	c.ConnectionWriteTimeout, c.StreamCloseTimeout, c.MaxStreamWindowSize = writeTimeout, closeTimeout, window
	return c
}

// keep ends the connection when the other side is silent for too long, and pings if it should.
// It returns when the session is over.
func keep(g *guard, s *yamux.Session, c clock.WithTicker, ping bool) {
	ticker := c.NewTicker(pingEvery)
	defer ticker.Stop()
	var pinging atomic.Bool
	for {
		select {
		case <-s.CloseChan():
			return
		case <-ticker.C():
		}
		if silent := g.silence(); silent >= deadAfter {
			g.end(fmt.Errorf("%w: %s", errSilent, silent.Round(time.Second)))
			_ = s.Close() // the reason is kept by the guard
			return
		}
		if ping && pinging.CompareAndSwap(false, true) {
			go func() {
				defer pinging.Store(false)
				_, _ = s.Ping() // an answer counts as heard, and silence is noticed above
			}()
		}
	}
}

// within calls f, and closes the connection if it takes longer than a Hello may, or longer than
// ctx.
func within(ctx context.Context, conn io.Closer, c clock.WithTicker, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := c.NewTimer(helloTimeout)
	defer timer.Stop()
	over := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-over:
		case <-ctx.Done():
			_ = conn.Close()
		case <-timer.C():
			_ = conn.Close()
		}
	}()
	err := f()
	close(over)
	<-stopped
	return err
}
