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

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// pageSize of the first list.
const pageSize = 500

// Beat is what is known of a cluster's lease.
type Beat struct {
	// Renewed is the renewTime that the lease shows; zero when it shows none.
	Renewed time.Time
	// Arrived is when the hub saw that renewTime first.
	Arrived time.Time
	// First is true while no renewal was seen since this process started.
	First bool
	// Away is how long before this sight there was no hub, and perhaps no API
	// server to renew at; zero unless First.
	Away time.Duration
}

// Last is when the cluster counts as last heard of. The first sight after a
// start counts as an arrival, unless the renewal it shows is older than the
// grace time; the time without a hub does not count, or an outage of the API
// server would make a whole fleet Unknown when it ends. A lease that shows no
// renewal counts from its sight.
func (b Beat) Last(grace time.Duration) time.Time {
	heard := b.Renewed.Add(b.Away)
	if b.First && !b.Renewed.IsZero() && b.Arrived.Sub(heard) > grace {
		return heard
	}
	return b.Arrived
}

// Arrivals keeps the Beat of every cluster. It is the store of a reflector on
// the leases of all clusters. Its methods are safe for concurrent use.
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

// SetAway tells how long there was no hub until just now; before Run.
func (a *Arrivals) SetAway(away time.Duration) { a.away = away }

// OnPresence registers a function to call when a lease came or went; before Run.
func (a *Arrivals) OnPresence(f func(cluster string)) { a.onPresence = append(a.onPresence, f) }

// OnBeat registers a function to call at each renewal; before Run. It must not
// block.
func (a *Arrivals) OnBeat(f func(cluster string, b Beat)) { a.onBeat = append(a.onBeat, f) }

// Has tells whether the cluster's lease exists. Before the first list it says
// yes, so that nobody makes one that is there.
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

// Fresh tells whether the cluster has renewed and was heard of within the grace
// time.
func (a *Arrivals) Fresh(cluster string, grace time.Duration) bool {
	b, ok := a.Get(cluster)
	return ok && !b.Renewed.IsZero() && a.clock.Now().Sub(b.Last(grace)) < grace
}

// Synced is closed when all leases are known.
func (a *Arrivals) Synced() <-chan struct{} { return a.synced }

// Each calls f with every cluster.
func (a *Arrivals) Each(f func(cluster string, b Beat)) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for cluster, b := range a.beats {
		f(cluster, b)
	}
}

// Run follows the leases until ctx ends. They come in protobuf and are
// forgotten at once but for their times.
func (a *Arrivals) Run(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("making the client of leases: %w", err)
	}
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
	r := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &coordinationv1.LeaseList{}
			return list, get(o).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.Watch = true
			return get(o).Watch(ctx)
		},
	}, &coordinationv1.Lease{}, store{a}, cache.ReflectorOptions{Name: "leases"})
	r.WatchListPageSize = pageSize
	r.RunWithContext(ctx)
	return nil
}

// leaseClient knows leases and no other kind of Kubernetes, as a typed client would.
func leaseClient(config *rest.Config, scheme *runtime.Scheme) (*rest.RESTClient, error) {
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

// Add notes a lease.
func (s store) Add(obj any) error { return s.put(obj) }

// Update notes a lease that changed.
func (s store) Update(obj any) error { return s.put(obj) }

// Delete forgets a lease.
func (s store) Delete(obj any) error {
	if l, ok := obj.(*coordinationv1.Lease); ok {
		s.drop(l.Namespace)
	}
	return nil
}

// Replace notes the result of a list.
func (s store) Replace(list []any, _ string) error {
	present := make(map[string]bool, len(list))
	for _, obj := range list {
		if l, ok := obj.(*coordinationv1.Lease); ok {
			present[l.Namespace] = true
		}
		if err := s.put(obj); err != nil {
			return err
		}
	}
	var gone []string
	s.Each(func(cluster string, _ Beat) {
		if !present[cluster] {
			gone = append(gone, cluster)
		}
	})
	for _, cluster := range gone {
		s.drop(cluster)
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync is part of the reflector's interface; there is none.
func (s store) Resync() error { return nil }

func (s store) put(obj any) error {
	l, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("noting %T: not a lease", obj)
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
	// A string of the decoded object would keep its whole buffer in memory.
	s.beats[strings.Clone(l.Namespace)] = b
	s.mu.Unlock()
	if !known {
		s.tell(l.Namespace)
	}
	for _, f := range s.onBeat {
		f(l.Namespace, b)
	}
	return nil
}

func (s store) drop(cluster string) {
	s.mu.Lock()
	_, had := s.beats[cluster]
	delete(s.beats, cluster)
	s.mu.Unlock()
	if had {
		s.tell(cluster)
	}
}

func (s store) tell(cluster string) {
	for _, f := range s.onPresence {
		f(cluster)
	}
}
