// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/debug"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
)

// locks are the leases of the leading replicas of each part.
var locks = map[part]string{
	partRegistration: "registration-controller-lock", partPlacement: "placement-lock", partWork: "work-manager-lock", partAddOn: "manager-lock",
}

// component runs one part of the hub in the split layout.
type component struct {
	processConfig
	part     part
	features clustermanager.Features
	// certDir holds the certificate of the debug endpoint, see follow.
	certDir string
}

// run serves until ctx is done, and runs the loops while this replica holds the lease of its
// part.
func (c *component) run(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.REST)
	if err != nil {
		return fmt.Errorf("creating the client: %w", err)
	}
	loops := &loops{processConfig: c.processConfig, client: client, parts: []part{c.part}, placements: placement.NewMetrics(), state: state{err: errStopped}}
	registry := observe.NewRegistry(version.Get())
	registry.MustRegister(&collector{loops: loops, clock: c.Clock})
	health := c.health(client, registry)
	health.AddReady("loops", loops.broken)
	run := []func(context.Context) error{
		func(ctx context.Context) error { return listen(ctx, observe.Port, health.Run) },
		func(ctx context.Context) error {
			return c.lead(ctx, c.lock(client, hub.ComponentNamespace, locks[c.part]), func(ctx context.Context, gap time.Duration) error {
				loops.update(func(s *state) { s.away = gap })
				defer loops.Stop()
				loops.Run(c.features) //nolint:contextcheck // Stop ends them
				<-ctx.Done()
				return nil
			})
		},
	}
	if c.part == partPlacement {
		registry.MustRegister(loops.placements)
	}
	if c.part == partPlacement && c.features.PlacementDebugServer {
		book := certs.NewBook(clustermanager.PlacementName())
		explains := &explainer{processConfig: c.processConfig, server: debug.NewServer(debug.Options{
			Client: client, Fleet: debug.View{Reader: loops.caches, Clock: c.Clock}, Log: c.Log.WithName("debug"),
		})}
		run = append(run,
			func(ctx context.Context) error {
				return c.follow(ctx, book, map[string]string{clustermanager.PlacementName(): c.certDir})
			},
			func(ctx context.Context) error { return explains.serve(ctx, book) })
	}
	return c.together(ctx, run...)
}
