// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// pageSize is the page size of the first list.
const pageSize = 500

// Beat is what is known of a cluster's lease.
type Beat struct {
	// Renewed is the renewTime that the lease shows; zero when it shows none.
	Renewed time.Time
	// Arrived is when the hub first saw that renewTime.
	Arrived time.Time
	// First is true until a renewal has been seen since this process started.
	First bool
	// Away is how long there was no hub before this sight, and perhaps no API server to renew
	// at; zero unless First.
	Away time.Duration
}

// Last is when the cluster counts as last heard from. The first sight after a start counts as
// an arrival, unless the renewal it shows is older than the grace period. The time without a
// hub does not count, or an outage of the API server would make the whole fleet Unknown when
// it ends. A lease that shows no renewal counts from when it was first seen.
func (b Beat) Last(grace time.Duration) time.Time {
	heard := b.Renewed.Add(b.Away)
	if b.First && !b.Renewed.IsZero() && b.Arrived.Sub(heard) > grace {
		return heard
	}
	return b.Arrived
}

// Arrivals keeps the Beat of every cluster. It is the store of a reflector on the leases of
// all clusters. Its methods are safe for concurrent use.
type Arrivals struct {
	clock      clock.PassiveClock
	away       time.Duration
	onPresence []func(cluster string)
	onBeat     []func(cluster string, b Beat)

	mu     sync.RWMutex
	beats  map[string]Beat
	once   sync.Once
	synced chan struct{}
}

// NewArrivals makes an empty store.
func NewArrivals(clk clock.PassiveClock) *Arrivals {
	return &Arrivals{clock: clk, beats: map[string]Beat{}, synced: make(chan struct{})}
}

// SetAway sets how long there was no hub until just now; call it before Run.
func (a *Arrivals) SetAway(away time.Duration) { a.away = away }

// OnPresence registers a function to call when a lease appears or disappears; call it before
// Run.
func (a *Arrivals) OnPresence(f func(cluster string)) { a.onPresence = append(a.onPresence, f) }

// OnBeat registers a function to call at each renewal, which must not block; call it before
// Run.
func (a *Arrivals) OnBeat(f func(cluster string, b Beat)) { a.onBeat = append(a.onBeat, f) }

// Has reports whether the cluster's lease exists. Before the first list it returns true, so
// that no existing lease is created again.
func (a *Arrivals) Has(cluster string) bool {
	select {
	case <-a.synced:
	default:
		return true
	}
	_, ok := a.Get(cluster)
	return ok
}

// Get returns what is known of a cluster's lease.
func (a *Arrivals) Get(cluster string) (Beat, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	b, ok := a.beats[cluster]
	return b, ok
}

// Fresh reports whether the cluster has renewed and was heard from within the grace period.
func (a *Arrivals) Fresh(cluster string, grace time.Duration) bool {
	b, ok := a.Get(cluster)
	return ok && !b.Renewed.IsZero() && a.clock.Now().Sub(b.Last(grace)) < grace
}

// Synced returns a channel that is closed once all leases are known.
func (a *Arrivals) Synced() <-chan struct{} { return a.synced }

// Each calls f for every cluster.
func (a *Arrivals) Each(f func(cluster string, b Beat)) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for cluster, b := range a.beats {
		f(cluster, b)
	}
}

// Run follows the leases until ctx ends. They are received as protobuf, and only their times
// are kept.
func (a *Arrivals) Run(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	client, err := leaseClient(config, scheme)
	if err != nil {
		return fmt.Errorf("making the client of leases: %w", err)
	}
	parameters := runtime.NewParameterCodec(scheme)
	get := func(o metav1.ListOptions) *rest.Request {
		o.LabelSelector = clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName
		o.FieldSelector = "metadata.name=" + clusterv1.LeaseName
		return client.Get().Resource("leases").VersionedParams(&o, parameters)
	}
	r := cache.NewReflectorWithOptions(watch.Guard(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &coordinationv1.LeaseList{}
			return list, get(o).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.Watch = true
			return get(o).Watch(ctx)
		},
	}), &coordinationv1.Lease{}, store{a}, cache.ReflectorOptions{Name: "leases", Backoff: &manager.ListRetry})
	r.WatchListPageSize = pageSize
	r.RunWithContext(ctx)
	return nil
}

// leaseClient returns a client that knows leases and no other kind, like a typed client, and
// adds them to the scheme.
func leaseClient(config *rest.Config, scheme *runtime.Scheme) (*rest.RESTClient, error) {
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	binary.GroupVersion, binary.APIPath = &coordinationv1.SchemeGroupVersion, "/apis"
	binary.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(binary)
}

// store is the side of Arrivals that the reflector writes to.
type store struct{ *Arrivals }

var _ cache.ReflectorStore = store{}

// Add records a lease.
func (s store) Add(obj any) error { return s.storeLease(obj) }

// Update records a changed lease.
func (s store) Update(obj any) error { return s.storeLease(obj) }

// Delete forgets a lease.
func (s store) Delete(obj any) error {
	if l, ok := obj.(*coordinationv1.Lease); ok {
		s.dropLease(l.Namespace)
	}
	return nil
}

// Replace records the result of a list.
func (s store) Replace(list []any, _ string) error {
	present := make(map[string]bool, len(list))
	for _, obj := range list {
		if err := s.storeLease(obj); err != nil {
			return err
		}
		present[obj.(*coordinationv1.Lease).Namespace] = true
	}
	var gone []string
	s.Each(func(cluster string, _ Beat) {
		if !present[cluster] {
			gone = append(gone, cluster)
		}
	})
	for _, cluster := range gone {
		s.dropLease(cluster)
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync is part of the reflector's interface; it does nothing.
func (s store) Resync() error { return nil }

func (s store) storeLease(obj any) error {
	l, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("storing %T: not a lease", obj)
	}
	var renewed time.Time
	if l.Spec.RenewTime != nil {
		renewed = l.Spec.RenewTime.Time
	}
	s.mu.Lock()
	before, known := s.beats[l.Namespace]
	if known && before.Renewed.Equal(renewed) {
		s.mu.Unlock()
		return nil
	}
	b := Beat{Renewed: renewed, Arrived: s.clock.Now(), First: !known}
	if b.First {
		b.Away = s.away
	}
	// A string of the decoded object would keep its whole buffer alive.
	s.beats[strings.Clone(l.Namespace)] = b
	s.mu.Unlock()
	if !known {
		s.notifyPresence(l.Namespace)
	}
	for _, f := range s.onBeat {
		f(l.Namespace, b)
	}
	return nil
}

func (s store) dropLease(cluster string) {
	s.mu.Lock()
	_, had := s.beats[cluster]
	delete(s.beats, cluster)
	s.mu.Unlock()
	if had {
		s.notifyPresence(cluster)
	}
}

func (s store) notifyPresence(cluster string) {
	for _, f := range s.onPresence {
		f(cluster)
	}
}
