// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const longest, shortly = time.Minute, time.Millisecond

// certify writes a client certificate for this user, valid for an hour, beside a kubeconfig.
func certify(t *testing.T, dir, user string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: user}, NotBefore: epoch, NotAfter: epoch.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write(t, dir, "tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, dir, "tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// hubSeeing returns a server that records the serial number of the client's certificate.
func hubSeeing(t *testing.T, seen *atomic.Int64) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.TLS.PeerCertificates[0].SerialNumber.Int64())
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWorkList"}`))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func TestMountedAccessIsFollowed(t *testing.T) {
	var seen atomic.Int64
	dir, clk, server := t.TempDir(), clocktesting.NewFakeClock(epoch), hubSeeing(t, &seen)
	o, err := parse([]string{"work", "--workload-source-config=" + filepath.Join(dir, "kubeconfig")})
	require.NoError(t, err)
	m := (&process{o: o, log: logr.Discard(), clock: clk}).newMounted()
	begun := make(chan agent.Session, 1)
	m.sessions.Serve = func(ctx context.Context, s agent.Session) {
		begun <- s
		<-ctx.Done()
	}
	fails := func(want string) {
		t.Helper()
		require.ErrorContains(t, m.follow(t.Context()), want)
	}
	require.ErrorContains(t, m.ready(), "not read yet")
	fails("no such file")
	write(t, dir, "kubeconfig", kubeconfigFor(server, "client-certificate: tls.crt, client-key: tls.key"))
	fails("tls.crt is missing")
	certify(t, dir, "system:open-cluster-management:c1:a", 1)
	fails("no file cluster-name")
	write(t, dir, "cluster-name", []byte("c2"))
	fails(`the certificate is for cluster "c1", not for "c2"`)
	require.Nil(t, m.sessions.Current())

	write(t, dir, "cluster-name", []byte("c1"))
	require.NoError(t, m.follow(t.Context()))
	session := <-begun
	require.Equal(t, agent.Identity{Cluster: "c1", Agent: "a"}, session.Identity)
	ask := func() int64 {
		t.Helper()
		_, err := session.Link.Client.Resource(worksResource).Namespace("c1").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return seen.Load()
	}
	require.EqualValues(t, 1, ask())

	// A renewal: half of it is not taken, all of it is, by the same session.
	before, err := os.ReadFile(filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	certify(t, dir, "system:open-cluster-management:c1:a", 2)
	after, err := os.ReadFile(filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	write(t, dir, "tls.key", before)
	fails("do not match")
	require.EqualValues(t, 1, ask())
	write(t, dir, "tls.key", after)
	require.NoError(t, m.follow(t.Context()))
	require.EqualValues(t, 2, ask())

	clk.Step(time.Hour)
	fails("has expired")
	require.EqualValues(t, 2, ask(), "the hub decides")
	require.NoError(t, os.Remove(filepath.Join(dir, "kubeconfig")))
	fails("no such file")
	require.EqualValues(t, 2, ask())
	require.Empty(t, begun)

	// Another identity is another session.
	write(t, dir, "kubeconfig", kubeconfigFor(server, "client-certificate: tls.crt, client-key: tls.key"))
	clk.SetTime(epoch)
	certify(t, dir, "system:open-cluster-management:c1:b", 3)
	require.NoError(t, m.follow(t.Context()))
	session = <-begun
	require.EqualValues(t, 3, ask())

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.run(ctx) }()
	require.Eventually(t, func() bool { return m.ready() == nil }, longest, shortly)
	require.NoError(t, os.Remove(filepath.Join(dir, "tls.key")))
	require.Eventually(t, func() bool { clk.Step(filesEvery); return m.ready() != nil }, longest, shortly)
	cancel()
	require.NoError(t, <-done)
	require.Nil(t, m.sessions.Current())
}
