// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// UserAgent is the user agent of simulated agents, as audit logs show it.
const UserAgent = "fakefleet-agent"

// schemaless stands for a resource in errors that name none.
var schemaless = schema.GroupResource{}

// Options of a Fleet.
type Options struct {
	// Bootstrap connects to the hub with the bootstrap identity. Join needs it; the
	// agents' own connections use its address and authority.
	Bootstrap *rest.Config
	// Pool is an identity that may write status and lease of every cluster. Attach needs
	// it: its agents share the connection.
	Pool *rest.Config
	// Seed determines all random values.
	Seed uint64
	// Clock times leases and pauses; nil is the real one.
	Clock clock.WithDelayedExecution
	// Report returns what an agent reports about its cluster, without conditions; nil is
	// a cluster of a few nodes with three claims.
	Report func(cluster string, r *rand.Rand) clusterv1.ManagedClusterStatus
	// Works makes each agent watch the ManifestWorks of its cluster, and report each as
	// applied and available.
	Works bool
	// AddOns makes each agent watch the ManagedClusterAddOns of its cluster, request the
	// certificates that they register for, and report each as available.
	AddOns bool
	// Latency is the most by which a request of an agent is delayed; the delays are drawn
	// from Seed. 0 delays none.
	Latency time.Duration
	// Trouble, if not nil, is called for each failed request of a running agent.
	Trouble func(cluster string, err error)
}

// Fleet is a number of simulated agents. Create it with New and end it with Close. Its
// methods are safe for concurrent use.
type Fleet struct {
	o         Options
	host      string
	roots     *x509.CertPool
	bootstrap *wire
	pool      *wire
	counts    counts

	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	agents map[string]*agent
	// left are the agents that Leave ended, for Return.
	left map[string]*agent
	keys map[string]*ecdsa.PrivateKey
}

// New prepares a fleet; it sends nothing. The agents run until Close.
func New(o Options) (*Fleet, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Report == nil {
		o.Report = smallCluster
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Fleet{o: o, ctx: ctx, cancel: cancel, agents: map[string]*agent{}, left: map[string]*agent{}, keys: map[string]*ecdsa.PrivateKey{}}
	var err error
	if o.Bootstrap != nil {
		f.host = strings.TrimSuffix(o.Bootstrap.Host, "/")
		f.roots = x509.NewCertPool()
		if !f.roots.AppendCertsFromPEM(o.Bootstrap.CAData) {
			return nil, errors.Join(errors.New("preparing a fleet: Options.Bootstrap has no authority in CAData"), f.Close())
		}
		if f.bootstrap, err = f.shared(o.Bootstrap); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if o.Pool != nil {
		if f.pool, err = f.shared(o.Pool); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// shared is a connection that many agents use.
func (f *Fleet) shared(config *rest.Config) (*wire, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing a connection of the fleet: %w", err)
	}
	return &wire{http: &http.Client{Transport: transport}, host: strings.TrimSuffix(config.Host, "/"), name: UserAgent, counts: &f.counts}, nil
}

// Close ends all agents immediately, without telling the hub.
func (f *Fleet) Close() error {
	f.cancel()
	f.mu.Lock()
	for _, a := range f.agents {
		a.end()
	}
	f.mu.Unlock()
	f.all.Wait()
	return nil
}

// Size returns how many agents run.
func (f *Fleet) Size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.agents)
}

// Counts returns how often the agents have made each request since New.
func (f *Fleet) Counts() map[Request]int64 { return f.counts.snapshot() }

// Leave ends the agent of one cluster, as the end of its process would: the
// hub is not told. Return starts it again.
func (f *Fleet) Leave(cluster string) {
	f.mu.Lock()
	a := f.agents[cluster]
	if a != nil {
		f.left[cluster] = a
	}
	delete(f.agents, cluster)
	f.mu.Unlock()
	if a != nil {
		a.end()
	}
}

// has reports whether a cluster has an agent.
func (f *Fleet) has(cluster string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.agents[cluster] != nil
}

// add records the agent of a cluster, or returns false when the cluster has one.
func (f *Fleet) add(a *agent) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.agents[a.cluster]; there || f.ctx.Err() != nil {
		return false
	}
	f.agents[a.cluster] = a
	return true
}

// draw returns the source of random values for one cluster.
func (f *Fleet) draw(cluster string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(cluster))
	return rand.New(rand.NewPCG(f.o.Seed, h.Sum64())) //nolint:gosec // nothing secret is drawn
}

// Prepare generates the keys of clusters in advance, so that a measured Join does not
// include it.
func (f *Fleet) Prepare(clusters ...string) error {
	for _, cluster := range clusters {
		key, err := newKey()
		if err != nil {
			return fmt.Errorf("making the key of cluster %s: %w", cluster, err)
		}
		f.mu.Lock()
		f.keys[cluster] = key
		f.mu.Unlock()
	}
	return nil
}

// key returns the prepared key, or generates one.
func (f *Fleet) key(cluster string) (*ecdsa.PrivateKey, error) {
	f.mu.Lock()
	key := f.keys[cluster]
	delete(f.keys, cluster)
	f.mu.Unlock()
	if key != nil {
		return key, nil
	}
	return newKey()
}
