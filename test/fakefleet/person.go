// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// PersonAgent is the user agent of a Person, as audit logs show it.
const PersonAgent = "fakefleet-person"

// Person is an administrator who accepts clusters.
type Person struct {
	wire   *wire
	counts counts
}

// NewPerson returns an administrator with the identity of config.
func NewPerson(config *rest.Config) (*Person, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection of a person: %w", err)
	}
	p := &Person{}
	p.wire = &wire{http: &http.Client{Transport: transport}, host: config.Host, name: PersonAgent, counts: &p.counts}
	return p, nil
}

// Counts returns how often this person has made each request.
func (p *Person) Counts() map[Request]int64 { return p.counts.snapshot() }

// Accept sets hubAcceptsClient of a cluster.
func (p *Person) Accept(ctx context.Context, cluster string) error {
	err := p.wire.do(ctx, call{
		method: http.MethodPatch, resource: "managedclusters", path: clustersPath + "/" + cluster, contentType: mergePatch,
		body: []byte(`{"spec":{"hubAcceptsClient":true}}`),
	}, nil)
	if err != nil {
		return fmt.Errorf("accepting cluster %s: %w", cluster, err)
	}
	return nil
}

// AcceptAll approves each pending certificate request of a cluster and accepts the cluster,
// until ctx ends. At most workers requests are handled at once.
func (p *Person) AcceptAll(ctx context.Context, workers int) error {
	open := make(chan *certificatesv1.CertificateSigningRequest)
	failed := make(chan error, workers+1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range workers {
		go func() {
			for csr := range open {
				if err := p.approveAndAccept(ctx, csr); err != nil && ctx.Err() == nil {
					failed <- err
					cancel()
				}
			}
		}()
	}
	defer close(open)
	err := p.wire.follow(ctx, call{
		path: requestsPath, resource: "certificatesigningrequests", query: "watch=1&labelSelector=" + clusterv1.LabelClusterName,
	}, func(kind string, raw json.RawMessage) error {
		csr := &certificatesv1.CertificateSigningRequest{}
		if err := json.Unmarshal(raw, csr); err != nil {
			return err
		}
		if kind != "ADDED" || len(csr.Status.Conditions) > 0 {
			return nil
		}
		select {
		case open <- csr:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	select {
	case cause := <-failed:
		return cause
	default:
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// approveAndAccept approves the request of one cluster and accepts it, with two writes.
func (p *Person) approveAndAccept(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ApprovedByAdministrator",
	})
	body, err := json.Marshal(csr)
	if err != nil {
		return err
	}
	err = p.wire.do(ctx, call{
		method: http.MethodPut, resource: "certificatesigningrequests/approval", path: requestsPath + "/" + csr.Name + "/approval",
		contentType: jsonType, body: body,
	}, nil)
	if err != nil {
		return fmt.Errorf("approving certificate request %s: %w", csr.Name, err)
	}
	return p.Accept(ctx, csr.Labels[clusterv1.LabelClusterName])
}
