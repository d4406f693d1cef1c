// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
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
	// AgentImage is described at importer.Config.
	AgentImage string
	// ManifestLimit is described at webhook.Options.
	ManifestLimit int
	// Steady is described at manager.Options.
	Steady func()
	Log    logr.Logger
}

// process is one replica.
type process struct {
	processConfig
	onServing atomic.Pointer[func()]
}

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
	loops := &loops{processConfig: p.processConfig, client: client, placements: decided, state: state{err: errStopped}}
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
	registry.MustRegister(decided, &collector{loops: loops, book: book, clock: p.Clock})
	explains := debug.NewServer(debug.Options{Client: client, Fleet: debug.View{Reader: loops.caches, Clock: p.Clock}, Log: p.Log.WithName("debug")})
	health := observe.NewServer(observe.Options{
		Metrics: registry, Access: observe.NewReviews(client, p.Clock), Now: p.Clock.Now, Log: p.Log.WithName("observe"),
	})
	health.AddReady("webhook", admission.Listening)

	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i, part := range []func(context.Context) error{
		func(ctx context.Context) error { return listen(ctx, observe.Port, health.Run) },
		func(ctx context.Context) error { return serveAdmission(ctx, admission, book) },
		func(ctx context.Context) error { return p.serveDebug(ctx, explains, collections, book) },
		collections.Run,
		tokens.Run,
		func(ctx context.Context) error {
			return p.lead(ctx, loops, clustermanager.Config{
				Client: client, Clock: p.Clock, Version: version.Get(), Policy: p.Policy,
				Serving: admission.Listening, OnServing: func(f func()) { p.onServing.Store(&f) }, Loops: loops, Labels: p.Labels, SyncLabels: p.SyncLabels,
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

// listen opens a port of the pod and serves it.
func listen(ctx context.Context, port int, serve func(context.Context, net.Listener) error) error {
	l, err := inpod.Listen(ctx, port)
	if err != nil {
		return err
	}
	return serve(ctx, l)
}

// serveAdmission opens the port once the serving certificates exist.
func serveAdmission(ctx context.Context, s *webhook.Server, book *certs.Book) error {
	select {
	case <-ctx.Done():
		return nil
	case <-book.Filled():
		return listen(ctx, webhook.Port, s.Run)
	}
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
	await := func(ctx context.Context, on bool) {
		for collections.Features().PlacementDebugServer != on {
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
		l, err := inpod.Listen(ctx, debug.Port)
		if err != nil {
			return err
		}
		p.Log.Info("Serving explanations of placements", "port", debug.Port)
		on, cancel := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			await(on, false)
			cancel()
		})
		err = observe.Serve(on, l, serving)
		cancel()
		watching.Wait()
		if err != nil {
			return err
		}
	}
}

func (p *process) serving() {
	if f := p.onServing.Load(); f != nil {
		(*f)()
	}
}

// lead competes for the lease until ctx is done, and runs the operator while it holds the
// lease. The loops learn how long no replica led before.
func (p *process) lead(ctx context.Context, loops *loops, config clustermanager.Config, collections *clustermanager.Collections) error {
	l := &lock.Lock{
		Client: config.Client, Namespace: inpod.Namespace(hub.Namespace), Name: lockName, Times: lockTimes,
		Pod: replica(), Process: rand.String(8), Clock: p.Clock, Log: p.Log,
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		err := l.Run(ctx, func(ctx context.Context) error {
			gap := l.Gap()
			p.Log.Info("This replica leads", "nobodyLedFor", gap.Round(time.Second).String())
			loops.update(func(s *state) { s.away = gap })
			return clustermanager.Lead(ctx, config, collections)
		})
		if ctx.Err() == nil {
			p.Log.Error(err, "Operator failed and will be restarted")
		}
	}, restartDelay)
	return nil
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
