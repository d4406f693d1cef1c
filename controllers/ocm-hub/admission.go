// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// fileCheck is how often mounted files are read again; kubelet needs longer to update them.
const fileCheck = 5 * time.Second

// registrationWebhook is the name of the webhook of registration as an argument.
const registrationWebhook = "registration"

// services are the webhooks by their names as arguments.
var services = map[string]string{
	registrationWebhook: operatorv1.ServiceRegistrationWebhook, "work": operatorv1.ServiceWorkWebhook, "addon": operatorv1.ServiceAddOnWebhook,
}

// admissionServer serves the webhooks of the split layout.
type admissionServer struct {
	processConfig
	// names are keys of services.
	names    []string
	features clustermanager.Features
	// certDir has a folder with tls.crt and tls.key for each of the names.
	certDir string
	// clientsFile may hold the authorities of the clients of admission.
	clientsFile string
	clients     atomic.Pointer[x509.CertPool]
	// port is that of admission, healthPort that of health and metrics.
	port, healthPort int
}

// run serves until ctx is done.
func (a *admissionServer) run(ctx context.Context) error {
	client, err := dynamic.NewForConfig(a.REST)
	if err != nil {
		return fmt.Errorf("creating the client: %w", err)
	}
	folders, names := map[string]string{}, []string(nil)
	for _, name := range a.names {
		dns := clustermanager.ServingName(hub.ComponentNamespace, services[name])
		folders[dns], names = filepath.Join(a.certDir, name), append(names, dns)
	}
	book := certs.NewBook(names...)
	if err := a.readClients(); err != nil {
		return err
	}
	idle := &loops{processConfig: a.processConfig, client: client, state: state{err: errStopped}}
	tokens := webhook.NewJoinTokens(client, a.Log)
	server := a.admission(webhook.Options{
		Certificate: book.Certificate, Hub: webhook.NewHub(client, tokens), Bound: idle.bound, Clients: a.clients.Load,
		Features: func() webhook.Features { return admissionFeatures(a.features) },
	})
	registry := observe.NewRegistry(version.Get())
	registry.MustRegister(&collector{loops: idle, book: book, clock: a.Clock})
	health := a.health(client, registry)
	health.AddReady("webhook", server.Listening)
	run := []func(context.Context) error{
		func(ctx context.Context) error { return listen(ctx, a.healthPort, health.Run) },
		func(ctx context.Context) error { return serveAdmission(ctx, server, book, a.port) },
		func(ctx context.Context) error { return a.follow(ctx, book, folders, a.readClients) },
	}
	if slices.Contains(a.names, registrationWebhook) { // the others know no join tokens
		run = append(run, tokens.Run)
	}
	return a.together(ctx, run...)
}

// readClients reads the authorities of the clients of admission. A file that cannot be read is
// an error rather than the absence of a restriction.
func (a *admissionServer) readClients() error {
	if a.clientsFile == "" {
		return nil
	}
	raw, err := os.ReadFile(inpod.Path(a.clientsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the authorities of clients: %w", err)
	}
	a.clients.Store(webhook.Clients(raw, err == nil))
	return nil
}

// follow keeps the certificates in the book those of the folders, by name, and calls the other
// functions as often as it looks. It returns when ctx is done.
func (p *processConfig) follow(ctx context.Context, book *certs.Book, folders map[string]string, also ...func() error) error {
	seen := map[string]certs.Pair{}
	for {
		for name, folder := range folders {
			pair, err := readPair(folder)
			if had := seen[name]; err == nil && (!bytes.Equal(had.Cert, pair.Cert) || !bytes.Equal(had.Key, pair.Key)) {
				err = book.Put(name, pair)
				seen[name] = pair
			}
			if err != nil {
				p.Log.Error(err, "Serving certificate cannot be used", "name", name)
			}
		}
		for _, f := range also {
			if err := f(); err != nil {
				p.Log.Error(err, "A mounted file cannot be used")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.Clock.After(fileCheck):
		}
	}
}

func readPair(folder string) (p certs.Pair, err error) {
	if p.Cert, err = os.ReadFile(inpod.Path(filepath.Join(folder, corev1.TLSCertKey))); err != nil {
		return p, err
	}
	p.Key, err = os.ReadFile(inpod.Path(filepath.Join(folder, corev1.TLSPrivateKeyKey)))
	return p, err
}
