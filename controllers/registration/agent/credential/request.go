// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var requestsResource = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}

// suffixLength is how many random characters follow "<cluster>-" in the name of
// a request, as the API server's generateName adds them.
const suffixLength = 5

// randomName returns n characters of lower-case letters and digits.
func randomName(n int) string { return strings.ToLower(rand.Text()[:n]) }

// newKey returns a new private key as PEM.
func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a private key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// signingRequest is the certificate request of registration.md 3.4.
func signingRequest(p Pending, seconds int32) (*unstructured.Unstructured, error) {
	key, err := readKey(p.Key)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:            pkix.Name{CommonName: p.Identity.CommonName(), Organization: p.Identity.Organizations()},
		SignatureAlgorithm: x509.ECDSAWithSHA256,
	}, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	spec := map[string]any{
		"request":    base64.StdEncoding.EncodeToString(encoded),
		"signerName": clusterv1.SignerName,
		"usages":     []any{"digital signature", "key encipherment", "client auth"},
	}
	if seconds > 0 {
		spec["expirationSeconds"] = int64(seconds)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "certificates.k8s.io/v1",
		"kind":       "CertificateSigningRequest",
		"metadata": map[string]any{
			"name":   p.Request,
			"labels": map[string]any{clusterv1.LabelClusterName: p.Identity.Cluster},
		},
		"spec": spec,
	}}, nil
}

// samePublicKey tells whether the request on the hub was made with this key.
func samePublicKey(u *unstructured.Unstructured, key []byte) bool {
	private, err := readKey(key)
	if err != nil {
		return false
	}
	encoded, _, _ := unstructured.NestedString(u.Object, "spec", "request")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return false
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return false
	}
	public, ok := csr.PublicKey.(*ecdsa.PublicKey)
	return ok && public.Equal(private.Public())
}

// readRequest is what a watch keeps of a request.
func readRequest(u *unstructured.Unstructured) (Request, bool) {
	r := Request{Known: true, Found: true}
	if encoded, _, _ := unstructured.NestedString(u.Object, "status", "certificate"); encoded != "" {
		r.Certificate, _ = base64.StdEncoding.DecodeString(encoded)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if t := c["type"]; t != "Denied" && t != "Failed" {
			continue
		}
		r.Denied = true
		r.Message = strings.TrimSpace(fmt.Sprintf("%v: %v", orEmpty(c["reason"]), orEmpty(c["message"])))
	}
	return r, true
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// watcher keeps a watch on the one request that is pending.
type watcher struct {
	onChange func()
	log      logr.Logger

	mu     sync.Mutex
	name   string
	client dynamic.Interface
	held   *watch.Collection[Request]
	stop   func()
}

// look returns what is known of the request, and starts to watch it if that is
// not done yet. An empty name ends the watch.
func (w *watcher) look(ctx context.Context, client dynamic.Interface, name string) Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.name != name || w.client != client {
		w.end()
		w.name, w.client = name, client
		if name != "" {
			w.begin(ctx)
		}
	}
	if name == "" {
		return Request{}
	}
	select {
	case <-w.held.Synced():
	default:
		if err := w.held.Err(); err != nil {
			return Request{Problem: "reading the certificate request: " + err.Error()}
		}
		return Request{}
	}
	if r, ok := w.held.Get(reconcile.Key{Name: name}); ok {
		return r
	}
	return Request{Known: true}
}

func (w *watcher) begin(ctx context.Context) {
	w.held = watch.New(watch.Options[Request]{
		Client: w.client, Resource: requestsResource, FieldSelector: "metadata.name=" + w.name, Keep: readRequest, Log: w.log,
	})
	w.held.OnChange(func(reconcile.Key) { w.onChange() })
	ctx, cancel := context.WithCancel(ctx)
	held := w.held
	var running sync.WaitGroup
	running.Go(func() { _ = held.Run(ctx) })
	running.Go(func() {
		if held.WaitSynced(ctx) == nil {
			w.onChange()
		}
	})
	w.stop = func() { cancel(); running.Wait() }
}

// end stops the watch and waits until it has stopped.
func (w *watcher) end() {
	if w.stop != nil {
		w.stop()
	}
	w.stop, w.held = nil, nil
}

// close ends the watch for good.
func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	w.name, w.client = "", nil
}

var (
	errThrottled = errors.New("the hub holds ten certificate requests of this cluster; no further one is made until some are gone")
	errNoHub     = errors.New("the server does not know ManagedClusters: it is no hub of Open Cluster Management")
)

// requestLabels selects the requests of a cluster itself, not of its add-ons.
func requestLabels(id agent.Identity) string {
	return clusterv1.LabelClusterName + "=" + id.Cluster + ",!" + clusterv1.LabelAddOnName
}
