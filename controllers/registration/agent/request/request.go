// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// resource is the resource of certificate requests.
var resource = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}

const (
	// Max is how many requests of one sender for one cluster, or for one of its add-ons, a hub
	// may hold before no more are made.
	Max = 10
	// ThrottleDelay is how soon the number of requests is checked again.
	ThrottleDelay = time.Minute
	// CallTimeout bounds the requests of one step to a cluster.
	CallTimeout = 15 * time.Second
)

var (
	// ErrThrottled means that the hub holds Max requests already.
	ErrThrottled = errors.New("the hub holds too many certificate requests")
	// errTaken means that another request already has the name.
	errTaken = errors.New("the name of the request is taken")
)

// Want is a certificate request to create.
type Want struct {
	// Name and Labels are those of the API object.
	Name   string
	Labels map[string]string
	// Signer is the signer to request.
	Signer string
	// Subject and DNSNames are those of the certificate.
	Subject  pkix.Name
	DNSNames []string
	// Key is the private key as PEM.
	Key []byte
	// Seconds is the lifetime to request; 0 leaves it to the hub.
	Seconds int32
}

// Build returns the API object.
func (w Want) Build() (*unstructured.Unstructured, error) {
	key, err := ReadKey(w.Key)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: w.Subject, DNSNames: w.DNSNames, SignatureAlgorithm: x509.ECDSAWithSHA256,
	}, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	spec := map[string]any{
		"request":    base64.StdEncoding.EncodeToString(encoded),
		"signerName": w.Signer,
		"usages":     []any{"digital signature", "key encipherment", "client auth"},
	}
	if w.Seconds > 0 {
		spec["expirationSeconds"] = int64(w.Seconds)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": spec,
	}}
	u.SetName(w.Name)
	u.SetLabels(w.Labels)
	return u, nil
}

// confirmGone reads a request that the watch no longer shows. It returns an AlreadyExists
// error if the hub still has it, because the watch is behind: an administrator may be about
// to answer it, and would then answer one that is no longer wanted. Nil means that it is
// gone, or that it may not be read.
func confirmGone(ctx context.Context, hub dynamic.Interface, name string) error {
	_, err := hub.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return apierrors.NewAlreadyExists(resource.GroupResource(), name)
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	}
	return fmt.Errorf("looking for certificate request %s: %w", name, err)
}

// Create creates the request on the hub, unless the hub holds Max requests that match the
// label selector and have the same sender. An existing request of the same name and key was
// created by this agent before a restart, and is not an error.
func (w Want) Create(ctx context.Context, hub dynamic.Interface, selector string) error {
	api := hub.Resource(resource)
	full, err := isThrottled(ctx, hub, selector)
	if err != nil {
		return fmt.Errorf("counting certificate requests: %w", err)
	}
	if full {
		return ErrThrottled
	}
	u, err := w.Build()
	if err != nil {
		return err
	}
	_, err = api.Create(ctx, u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		live, err := api.Get(ctx, w.Name, metav1.GetOptions{})
		if err == nil && !SameKey(live, w.Key) {
			err = errTaken
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("creating certificate request %s: %w", w.Name, err)
	}
	return nil
}

// SameKey reports whether the request on the hub was made with this key.
func SameKey(u *unstructured.Unstructured, key []byte) bool {
	private, err := ReadKey(key)
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

// Errand is what the steps towards every certificate need.
type Errand struct {
	// Hub is where requests are sent; Prefix begins their names.
	Hub    dynamic.Interface
	Prefix string
	// Want is the request to send, without name and key; Selector selects those on the hub
	// that count towards Max.
	Want     Want
	Selector string
	// Pending is the request in progress, and Write stores the next one instead.
	Pending Pending
	Write   func(context.Context, Pending) error
}

// Do performs StepBegin, StepRestart, StepAsk or StepPostpone. A key and a name are stored
// before the request is sent, and a key whose request was denied is dropped: it will never be
// signed.
func (e Errand) Do(ctx context.Context, p Plan, now time.Time) error {
	switch p.Step {
	case StepAsk:
		e.Want.Name, e.Want.Key = e.Pending.Request, e.Pending.Key
		err := e.Want.Create(ctx, e.Hub, e.Selector)
		if !errors.Is(err, errTaken) {
			return err
		}
		p.Attempt, p.Reason = p.Attempt+1, err.Error()
	case StepRestart:
		if err := confirmGone(ctx, e.Hub, e.Pending.Request); err != nil {
			return err
		}
	default:
	}
	next := Pending{Attempt: p.Attempt, Reason: p.Reason}
	if p.Begins() {
		key, err := NewKey()
		if err != nil {
			return err
		}
		next.Request, next.Key = e.Prefix+RandomName(suffixLength), key
	} else {
		next.RetryAfter = now.Add(retryDelay(p.Attempt))
	}
	return e.Write(ctx, next)
}

// Begins reports whether the plan starts a new request.
func (p Plan) Begins() bool { return p.Step == StepBegin || p.Step == StepRestart }
