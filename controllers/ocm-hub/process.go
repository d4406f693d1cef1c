// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/hosting"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/debug"
	proxy "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/lock"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// lockName is the lease of the leading operator, in both layouts.
const lockName = "clustermanager-lock"

// lockTimes replace a dead leader within about 15 seconds.
var lockTimes = lock.Times{Duration: 15 * time.Second, Period: 4 * time.Second, Retry: 2 * time.Second, Patience: 10 * time.Second}

// ourselves are the user names of the hub's loops in both layouts: during a switch, admission
// of one serves the loops of the other.
var ourselves = []string{
	"system:serviceaccount:" + hub.Namespace + ":" + hub.Name, "system:serviceaccount:" + hub.ComponentNamespace + ":" + hub.RegistrationAccount,
}

// processConfig configures a process.
type processConfig struct {
	REST   *rest.Config
	Clock  clock.WithTicker
	Policy certs.Policy
	// Labels and SyncLabels are described at clustermanager.Config, Cleanup at gc.Config.
	Labels     map[string]string
	SyncLabels bool
	// KeepAPIs is described at clustermanager.Config.
	KeepAPIs bool
	Cleanup  []schema.GroupVersionResource
	// AgentImage is described at importer.Config.
	AgentImage string
	// ManifestLimit is described at webhook.Options.
	ManifestLimit int
	// Profile is what flags say about the limits of connections, and TLS what is in effect.
	Profile observe.Profile
	TLS     observe.TLS
	// Election says how processes of the same kind find their leader.
	Election election
	// Steady is described at manager.Options.
	Steady func()
	Log    logr.Logger
}

// election says how processes of the same kind find their leader.
type election struct {
	// Disabled makes every process lead: there must be one only.
	Disabled bool
	// Namespace of the lease; empty means that of the pod.
	Namespace string
	Times     lock.Times
}

// process is one replica of the hub in the compact layout, or of its operator in the split
// layout. Both serve admission: while a hub is switched from one layout to the other, the pods
// behind the Services in this namespace always answer.
type process struct {
	processConfig
	// Split is nil in the compact layout.
	Split *clustermanager.Split
	// Hosted is described at clustermanager.Config.
	Hosted    bool
	onServing atomic.Pointer[func()]
}

// run serves until ctx is done, and leads while this replica holds the lease.
func (p *process) run(ctx context.Context) error {
	client, err := dynamic.NewForConfig(p.REST)
	if err != nil {
		return fmt.Errorf("creating the client: %w", err)
	}
	collections := clustermanager.NewCollections(client, p.Profile, p.Log)
	p.TLS = observe.Changing(collections.TLS)
	book := certs.NewBook(clustermanager.ServingNames()...)
	collections.Fill(book, p.Log)
	tokens := webhook.NewJoinTokens(client, p.Log)
	loops := &loops{processConfig: p.processConfig, client: client, parts: parts, placements: placement.NewMetrics(), state: state{err: errStopped}}
	certificate := book.Certificate
	if p.Hosted { // whose clients ask for addresses
		certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return book.Certificate(&tls.ClientHelloInfo{}) }
	}
	admission := p.admission(webhook.Options{
		Certificate: certificate, Hub: webhook.NewHub(client, tokens), Bound: loops.bound, OnListening: p.serving,
		Clients:  func() *x509.CertPool { return webhook.Clients(collections.Clients()) },
		Features: func() webhook.Features { return admissionFeatures(collections.Features()) },
	})
	leader := p.lock(client, hub.Namespace, lockName)
	leader.Address = inpod.Address(proxy.Port)
	tunnels := newTunnels(p.processConfig, client, leader.HolderAddress)
	registry := observe.NewRegistry(version.Get())
	registry.MustRegister(loops.placements, &collector{loops: loops, book: book, clock: p.Clock}, tunnels)
	health := p.health(client, registry)
	health.AddReady("webhook", admission.Listening)
	config := clustermanager.Config{
		Client: client, Clock: p.Clock, Version: version.Get(), Policy: p.Policy, Split: p.Split, Hosted: p.Hosted,
		Serving: admission.Listening, OnServing: func(f func()) { p.onServing.Store(&f) }, Loops: loops, Labels: p.Labels, SyncLabels: p.SyncLabels,
		KeepAPIs:  p.KeepAPIs,
		Authority: tunnels.authority, OnAuthority: func(f func()) { tunnels.onAuthority.Store(&f) },
	}
	run := []func(context.Context) error{
		func(ctx context.Context) error { return listen(ctx, observe.Port, health.Run) },
		func(ctx context.Context) error { return serveAdmission(ctx, admission, book, webhook.Port) },
		collections.Run,
		tokens.Run,
		func(ctx context.Context) error {
			return p.lead(ctx, leader, func(ctx context.Context, gap time.Duration) error {
				loops.update(func(s *state) { s.away = gap })
				return p.together(ctx,
					func(ctx context.Context) error { return p.operate(ctx, config, collections) },
					func(ctx context.Context) error { return tunnels.lead(ctx, collections) },
				)
			})
		},
	}
	if !p.Hosted {
		run = append(run, func(ctx context.Context) error { return tunnels.whileOn(ctx, collections, book) })
	}
	if p.Split == nil {
		explains := &explainer{processConfig: p.processConfig, server: debug.NewServer(debug.Options{
			Client: client, Fleet: debug.View{Reader: loops.caches, Clock: p.Clock}, Log: p.Log.WithName("debug"),
		})}
		run = append(run, func(ctx context.Context) error { return explains.whileOn(ctx, collections, book) })
	}
	return p.together(ctx, run...)
}

// operate keeps the hub of this cluster and, unless it is itself such a hub, those of others.
func (p *process) operate(ctx context.Context, config clustermanager.Config, collections *clustermanager.Collections) error {
	own := func(ctx context.Context) error { return clustermanager.Lead(ctx, config, collections) }
	if p.Hosted {
		return own(ctx)
	}
	others := hosting.New(hosting.Config{
		Client: config.Client, Clock: p.Clock, Version: config.Version, UserAgent: p.REST.UserAgent, KeepAPIs: p.KeepAPIs, Log: p.Log.WithName(hosting.Name),
	})
	return p.together(ctx, own, others.Run)
}

// admission returns a server of admission and conversion.
func (p *processConfig) admission(o webhook.Options) *webhook.Server {
	o.Clock, o.Linger, o.ManifestLimit, o.Self, o.TLS, o.Log = p.Clock, webhook.Linger, p.ManifestLimit, ourselves, p.TLS, p.Log.WithName("webhook")
	return webhook.NewServer(o)
}

// admissionFeatures returns the features that admission depends on.
func admissionFeatures(f clustermanager.Features) webhook.Features {
	return webhook.Features{
		DefaultClusterSet: f.DefaultClusterSet, ResourceCleanup: f.ResourceCleanup,
		NilExecutorValidating: f.NilExecutorValidating, ManifestWorkReplicaSet: f.ManifestWorkReplicaSet,
		ClusterPermission: f.ClusterPermission,
	}
}

// health returns the server of health and metrics.
func (p *processConfig) health(client dynamic.Interface, registry *prometheus.Registry) *observe.Server {
	return observe.NewServer(observe.Options{
		Metrics: registry, Access: observe.NewReviews(client, p.Clock), TLS: p.TLS, Now: p.Clock.Now, Log: p.Log.WithName("observe"),
	})
}

// together runs the functions until the first of them returns, which ends the others.
func (p *processConfig) together(ctx context.Context, run ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, p.Log))
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(run))
	for i, f := range run {
		wg.Go(func() {
			defer cancel()
			errs[i] = f(ctx)
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
func serveAdmission(ctx context.Context, s *webhook.Server, book *certs.Book, port int) error {
	select {
	case <-ctx.Done():
		return nil
	case <-book.Filled():
		return listen(ctx, port, s.Run)
	}
}

func (p *process) serving() {
	if f := p.onServing.Load(); f != nil {
		(*f)()
	}
}

// lock returns the lock of processes of the same kind.
func (p *processConfig) lock(client dynamic.Interface, namespace, lease string) *lock.Lock {
	return &lock.Lock{
		Client: client, Namespace: cmp.Or(p.Election.Namespace, inpod.Namespace(namespace)), Name: lease, Times: p.Election.Times,
		Pod: replica(), Process: rand.String(8), Clock: p.Clock, Log: p.Log,
	}
}

// lead competes for the lock until ctx is done, and works while it holds it. The work learns how
// long no replica led before.
func (p *processConfig) lead(ctx context.Context, l *lock.Lock, work func(ctx context.Context, gap time.Duration) error) error {
	hold := l.Run
	if p.Election.Disabled {
		hold = func(ctx context.Context, work func(context.Context) error) error { return work(ctx) }
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		err := hold(ctx, func(ctx context.Context) error {
			gap := l.Gap()
			p.Log.Info("This replica leads", "nobodyLedFor", gap.Round(time.Second).String())
			return work(ctx, gap)
		})
		if ctx.Err() == nil {
			p.Log.Error(err, "The leader failed and will be restarted")
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
