// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Times between polls for the acceptance of the cluster, as in ocm-agent: the agent may
// not watch before it is accepted.
const (
	firstLook, lastLook = 50 * time.Millisecond, 10 * time.Second
	lookGrowth          = 8.0 / 7
)

// attaching is how many clusters are attached at once.
const attaching = 16

// Join registers a cluster with a new agent, which runs on from then. It returns when the
// agent has reported that the cluster is available and has renewed the lease for the
// first time. Someone has to approve and accept in the meantime; see Person.
func (f *Fleet) Join(ctx context.Context, cluster string) error {
	if f.has(cluster) {
		return fmt.Errorf("joining cluster %s: %w", cluster, errThere)
	}
	key, err := f.key(cluster)
	if err != nil {
		return err
	}
	certificate, err := f.register(ctx, cluster, func() ([]byte, error) { return request(cluster, key) })
	if err != nil {
		return fmt.Errorf("joining cluster %s: %w", cluster, err)
	}
	own, err := f.connect(certificate, key)
	if err != nil {
		return fmt.Errorf("joining cluster %s: %w", cluster, err)
	}
	if err := f.start(ctx, cluster, own); err != nil {
		return fmt.Errorf("joining cluster %s: %w", cluster, err)
	}
	return nil
}

// start runs a new agent of a registered cluster on its connection. It returns when the agent
// has reported and renewed the lease for the first time.
func (f *Fleet) start(ctx context.Context, cluster string, own *wire) error { //nolint:contextcheck // the agent outlives the call
	life, stop := context.WithCancel(f.ctx)
	a := &agent{fleet: f, cluster: cluster, wire: own, stop: stop, random: f.draw(cluster)}
	if !f.add(a) {
		stop()
		return errThere
	}
	mc, err := a.awaitAccepted(ctx)
	if err == nil {
		a.duration(mc) //nolint:contextcheck // the agent outlives the call
		if err = a.report(ctx, mc); apierrors.IsConflict(err) {
			err = a.reportAgain(ctx)
		}
	}
	for err == nil {
		// The hub creates the lease shortly after it has accepted the cluster, and the
		// API server learns of the agent's right to it some time later. The agent before may
		// have been in the middle of a renewal.
		if err = a.renew(ctx); !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
			break
		}
		if err = nil; !a.wait(ctx, firstLook) {
			err = ctx.Err()
		}
	}
	if err != nil {
		f.Leave(cluster)
		return err
	}
	f.all.Go(func() { a.watch(life, mc) })
	a.serve(life)                  //nolint:contextcheck // the agent outlives the call
	a.next(a.interval(1, stretch)) //nolint:contextcheck // the agent outlives the call
	return nil
}

// serve starts the watches of works and add-ons that the fleet wants.
func (a *agent) serve(life context.Context) {
	if a.fleet.o.Works {
		a.fleet.all.Go(func() { a.watchWorks(life) })
	}
	if a.fleet.o.AddOns {
		a.fleet.all.Go(func() { a.watchAddOns(life) })
	}
}

// register makes the cluster and its certificate request known to the hub and
// waits for the certificate.
func (f *Fleet) register(ctx context.Context, cluster string, csr func() ([]byte, error)) ([]byte, error) {
	mc, err := json.Marshal(&clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: cluster},
		Spec:       clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://" + cluster + ".example:6443"}}},
	})
	if err != nil {
		return nil, err
	}
	err = f.bootstrap.do(ctx, call{method: http.MethodPost, resource: "managedclusters", path: clustersPath, contentType: jsonType, body: mc}, nil)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	body, err := csr()
	if err != nil {
		return nil, err
	}
	return f.bootstrap.ask(ctx, body)
}

// ask creates a certificate request and waits for the certificate.
func (w *wire) ask(ctx context.Context, body []byte) ([]byte, error) {
	made := &certificatesv1.CertificateSigningRequest{}
	c := call{method: http.MethodPost, resource: "certificatesigningrequests", path: requestsPath, contentType: jsonType, body: body}
	if err := w.do(ctx, c, made); err != nil {
		return nil, err
	}
	return w.issued(ctx, made)
}

// errEnough ends a watch that has seen what it waits for.
var errEnough = errors.New("enough was seen")

// issued watches one certificate request, by its name, until it is answered.
func (w *wire) issued(ctx context.Context, made *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	version := made.ResourceVersion
	var certificate []byte
	for {
		err := w.follow(ctx, call{
			path: requestsPath, resource: "certificatesigningrequests",
			query: "watch=1&fieldSelector=metadata.name%3D" + made.Name + "&resourceVersion=" + version,
		}, func(kind string, raw json.RawMessage) error {
			csr := &certificatesv1.CertificateSigningRequest{}
			if err := json.Unmarshal(raw, csr); err != nil {
				return err
			}
			version = csr.ResourceVersion
			for _, c := range csr.Status.Conditions {
				if c.Type != certificatesv1.CertificateApproved {
					return fmt.Errorf("the certificate request is %s: %s", c.Type, c.Message)
				}
			}
			if kind == eventDeleted {
				return errors.New("the certificate request was deleted")
			}
			if certificate = csr.Status.Certificate; len(certificate) > 0 {
				return errEnough
			}
			return nil
		})
		switch {
		case errors.Is(err, errEnough):
			return certificate, nil
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			continue
		case err != nil:
			return nil, err
		}
	}
}

// awaitAccepted polls until the hub has given the agent its rights.
func (a *agent) awaitAccepted(ctx context.Context) (*clusterv1.ManagedCluster, error) {
	for wait := firstLook; ; wait = min(time.Duration(lookGrowth*float64(wait)), lastLook) {
		mc, err := a.get(ctx)
		if err == nil && accepted(mc) {
			return mc, nil
		}
		if err != nil && !apierrors.IsForbidden(err) {
			a.trouble(err)
		}
		if !a.wait(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// reportAgain reads the cluster and reports, until there is no conflict.
func (a *agent) reportAgain(ctx context.Context) error {
	for {
		mc, err := a.get(ctx)
		if err != nil {
			return err
		}
		if err = a.report(ctx, mc); !apierrors.IsConflict(err) {
			return err
		}
		if !a.wait(ctx, firstLook) {
			return ctx.Err()
		}
	}
}

// Attach starts agents for clusters that are accepted already, on the shared connection.
// Each renews its lease, so that the hub does not take it for an agent that was away
// since it was accepted, and reports available unless the hub has that already. From then
// on it renews the lease, the first time after a random part of its duration. It returns
// when all have reported.
func (f *Fleet) Attach(ctx context.Context, clusters ...string) error {
	leases, err := f.leases(ctx)
	if err != nil {
		return fmt.Errorf("attaching agents: %w", err)
	}
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	slots := make(chan struct{}, attaching)
	for _, cluster := range clusters {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := f.attach(ctx, cluster, leases[cluster]); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("attaching the agent of cluster %s: %w", cluster, err))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// leases returns the leases of all clusters, read page by page.
func (f *Fleet) leases(ctx context.Context) (map[string]*coordinationv1.Lease, error) {
	out, more := map[string]*coordinationv1.Lease{}, ""
	for {
		page := &coordinationv1.LeaseList{}
		err := f.pool.do(ctx, call{
			method: http.MethodGet, resource: "leases", path: "/apis/coordination.k8s.io/v1/leases",
			query: "limit=500&fieldSelector=metadata.name%3D" + clusterv1.LeaseName + "&continue=" + url.QueryEscape(more),
		}, page)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			lease := page.Items[i].DeepCopy()
			lease.ManagedFields = nil
			out[lease.Namespace] = lease
		}
		if more = page.Continue; more == "" {
			return out, nil
		}
	}
}

func (f *Fleet) attach(ctx context.Context, cluster string, lease *coordinationv1.Lease) error {
	life, stop := context.WithCancel(f.ctx)
	a := &agent{fleet: f, cluster: cluster, wire: f.pool, stop: stop, random: f.draw(cluster), lease: lease}
	if !f.add(a) {
		stop()
		return errThere
	}
	err := a.renew(ctx)
	var mc *clusterv1.ManagedCluster
	if err == nil {
		mc, err = a.get(ctx)
	}
	if err == nil {
		a.duration(mc) //nolint:contextcheck // the agent outlives the call
		if err = a.report(ctx, mc); apierrors.IsConflict(err) {
			err = a.reportAgain(ctx)
		}
	}
	if err != nil {
		f.Leave(cluster)
		return err
	}
	a.serve(life)            //nolint:contextcheck // the agent outlives the call
	a.next(a.interval(0, 1)) //nolint:contextcheck // the agent outlives the call
	return nil
}
