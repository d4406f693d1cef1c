// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/debug"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/lock"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// lockName is the lease of the leading replica.
const lockName = "clustermanager-lock"

// lockTimes replace a dead leader within about 15 seconds.
var lockTimes = lock.Times{Duration: 15 * time.Second, Period: 4 * time.Second, Retry: 2 * time.Second, Patience: 10 * time.Second}

// processConfig configures a process.
type processConfig struct {
	REST   *rest.Config
	Clock  clock.WithTicker
	Policy certs.Policy
	// Labels and SyncLabels are described at clustermanager.Config, Cleanup at gc.Config.
	Labels     map[string]string
	SyncLabels bool
	Cleanup    []schema.GroupVersionResource
	// ManifestLimit is described at webhook.Options.
	ManifestLimit int
	// Steady is described at manager.Options.
	Steady func()
	Log    logr.Logger
}

// process is one replica.
type process struct {
	processConfig
	mu        sync.Mutex
	onServing func()
}

func newProcess(c processConfig) *process { return &process{processConfig: c} }

// run serves until ctx is done, and leads while this replica holds the lease.
func (p *process) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, p.Log))
	defer cancel()
	client, err := dynamic.NewForConfig(p.REST)
	if err != nil {
		return fmt.Errorf("creating the client: %w", err)
	}
	collections := clustermanager.NewCollections(client, p.Log)
	book := certs.NewBook(clustermanager.ServingNames()...)
	collections.Fill(book, p.Log)
	tokens := webhook.NewJoinTokens(client, p.Log)
	decided := placement.NewMetrics()
	loops := newLoops(loopsConfig{REST: p.REST, Client: client, Clock: p.Clock, Cleanup: p.Cleanup, Placements: decided, Steady: p.Steady, Log: p.Log})
	admission := webhook.NewServer(webhook.Options{
		Certificate:   book.Certificate,
		Hub:           webhook.NewHub(client, tokens),
		Clock:         p.Clock,
		Linger:        webhook.Linger,
		OnListening:   p.serving,
		Log:           p.Log.WithName("webhook"),
		ManifestLimit: p.ManifestLimit, Bound: loops.bound,
		Clients: func() *x509.CertPool { return webhook.Clients(collections.Clients()) },
		Self:    "system:serviceaccount:" + hub.Namespace + ":" + hub.Name,
		Features: func() webhook.Features {
			f := collections.Features()
			return webhook.Features{
				DefaultClusterSet: f.DefaultClusterSet, ResourceCleanup: f.ResourceCleanup,
				NilExecutorValidating: f.NilExecutorValidating, ManifestWorkReplicaSet: f.ManifestWorkReplicaSet,
			}
		},
	})
	registry := observe.NewRegistry(version.Get())
	registry.MustRegister(decided, &collector{loops: loops, book: book, clock: p.Clock}, &workCollector{loops: loops, clock: p.Clock})
	explains := debug.NewServer(debug.Options{Client: client, Fleet: debug.View{Reader: loops.caches, Clock: p.Clock}, Log: p.Log.WithName("debug")})
	health := observe.NewServer(observe.Options{
		Metrics: registry, Access: observe.NewReviews(client, p.Clock), Now: p.Clock.Now, Log: p.Log.WithName("observe"),
	})
	health.AddReady("webhook", admission.Listening)

	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i, part := range []func(context.Context) error{
		func(ctx context.Context) error { return p.serveHealth(ctx, health) },
		func(ctx context.Context) error { return p.serveAdmission(ctx, admission, book) },
		func(ctx context.Context) error { return p.serveDebug(ctx, explains, collections, book) },
		collections.Run,
		tokens.Run,
		func(ctx context.Context) error {
			return p.lead(ctx, loops.setAway, clustermanager.Config{
				Client: client, Clock: p.Clock, Version: version.Get(), Policy: p.Policy,
				Serving: admission.Listening, OnServing: p.setOnServing, Loops: loops, Labels: p.Labels, SyncLabels: p.SyncLabels,
			}, collections)
		},
	} {
		wg.Go(func() {
			defer cancel()
			errs[i] = part(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (p *process) serveHealth(ctx context.Context, s *observe.Server) error {
	l, err := inpod.Listen(ctx, observe.Port)
	if err != nil {
		return err
	}
	return s.Run(ctx, l)
}

// serveAdmission opens the port once the serving certificates exist.
func (p *process) serveAdmission(ctx context.Context, s *webhook.Server, book *certs.Book) error {
	select {
	case <-ctx.Done():
		return nil
	case <-book.Filled():
	}
	l, err := inpod.Listen(ctx, webhook.Port)
	if err != nil {
		return err
	}
	return s.Run(ctx, l)
}

// serveDebug keeps the port of the debug endpoint open while its gate is on.
func (p *process) serveDebug(ctx context.Context, s *debug.Server, collections *clustermanager.Collections, book *certs.Book) error {
	changed := make(chan struct{}, 1)
	defer collections.Subscribe(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	// The same certificate for any server name, such as that of a forwarded port.
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return book.Certificate(&tls.ClientHelloInfo{ServerName: clustermanager.PlacementName()})
	}
	serving := observe.Serving{Handler: s, Certificate: certificate, Patience: debug.Patience}
	for {
		var done chan error // nil while nothing is served
		serve, cancel := context.WithCancel(ctx)
		if collections.Features().PlacementDebugServer {
			l, err := inpod.Listen(ctx, debug.Port)
			if err != nil {
				cancel()
				return err
			}
			p.Log.Info("Serving explanations of placements", "port", debug.Port)
			done = make(chan error, 1)
			go func() { done <- observe.Serve(serve, l, serving) }()
		}
		err := awaitSwitch(ctx, changed, done, func() bool { return collections.Features().PlacementDebugServer != (done != nil) })
		cancel()
		if done != nil && err == nil {
			err = <-done
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// awaitSwitch waits until switched returns true after a change, or ctx is done, or done
// delivers an error, which is returned.
func awaitSwitch(ctx context.Context, changed <-chan struct{}, done chan error, switched func() bool) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-done:
			done <- nil
			return err
		case <-changed:
			if switched() {
				return nil
			}
		}
	}
}

func (p *process) setOnServing(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onServing = f
}

func (p *process) serving() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.onServing != nil {
		p.onServing()
	}
}

// lead competes for the lease until ctx is done, and runs the operator while it holds the
// lease. away is called with how long no replica led before.
func (p *process) lead(ctx context.Context, away func(time.Duration), config clustermanager.Config, collections *clustermanager.Collections) error {
	l := &lock.Lock{
		Client: config.Client, Namespace: inpod.Namespace(hub.Namespace), Name: lockName, Times: lockTimes,
		Pod: replica(), Process: rand.String(8), Clock: p.Clock, Log: p.Log,
	}
	for {
		err := l.Run(ctx, func(ctx context.Context) error {
			gap := l.Gap()
			p.Log.Info("This replica leads", "nobodyLedFor", gap.Round(time.Second).String())
			away(gap)
			return clustermanager.Lead(ctx, config, collections)
		})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // ctx is done, so any error is part of stopping
		}
		p.Log.Error(err, "Operator failed and will be restarted")
		select {
		case <-ctx.Done():
			return nil
		case <-p.Clock.After(restartDelay):
		}
	}
}

// replica returns a name that is unique among the replicas. In a pod it is just the pod's
// name: a restarted container replaces the previous one, which has already ended, and need
// not wait until its lease expires.
func replica() string {
	if inpod.Known() {
		return inpod.Name()
	}
	return inpod.Name() + "-" + rand.String(8)
}
