// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/debug"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
)

// explainer serves the explanations of placements.
type explainer struct {
	processConfig
	server *debug.Server
}

// serve answers until ctx is done, with the same certificate for any server name, such as that
// of a forwarded port.
func (e *explainer) serve(ctx context.Context, book *certs.Book) error {
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return book.Certificate(&tls.ClientHelloInfo{ServerName: clustermanager.PlacementName()})
	}
	e.Log.Info("Serving explanations of placements", "port", debug.Port)
	serving := observe.Serving{Handler: e.server, Certificate: certificate, Patience: debug.Patience, TLS: e.TLS}
	return listen(ctx, debug.Port, func(ctx context.Context, l net.Listener) error { return observe.Serve(ctx, l, serving) })
}

// whileOn keeps the port open while the gate of the debug endpoint is on.
func (e *explainer) whileOn(ctx context.Context, collections *clustermanager.Collections, book *certs.Book) error {
	isOn := func() bool { return collections.Features().PlacementDebugServer }
	return whileOn(ctx, collections, isOn, func(ctx context.Context) error { return e.serve(ctx, book) })
}

// whileOn serves while a gate is on, until ctx is done.
func whileOn(ctx context.Context, collections *clustermanager.Collections, isOn func() bool, serve func(context.Context) error) error {
	changed := make(chan struct{}, 1)
	defer collections.Subscribe(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	await := func(ctx context.Context, on bool) {
		for isOn() != on {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
	for {
		if await(ctx, true); ctx.Err() != nil {
			return nil
		}
		on, cancel := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			await(on, false)
			cancel()
		})
		err := serve(on)
		cancel()
		watching.Wait()
		if err != nil {
			return err
		}
	}
}
