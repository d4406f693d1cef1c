// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t *testing.T, dir string) (*pki.Authority, *x509.CertPool) {
	t.Helper()
	a, err := pki.Open(dir, "test", now)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(a.Certificate()))
	return a, pool
}

func leaf(t *testing.T, p pki.Pair) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	require.NoError(t, err)
	return pair.Leaf
}

func TestCertificatesAreGoodForWhatTheyWereMadeForOnly(t *testing.T) {
	a, pool := open(t, t.TempDir())
	serving, err := a.Serving("serving", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	client, err := a.Client("client", "someone", "some", "groups")
	require.NoError(t, err)

	server := leaf(t, serving)
	check := func(c *x509.Certificate, usage x509.ExtKeyUsage, name string) error {
		_, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	require.NoError(t, check(server, x509.ExtKeyUsageServerAuth, "127.0.0.1"))
	require.NoError(t, check(server, x509.ExtKeyUsageServerAuth, "localhost"))
	require.Error(t, check(server, x509.ExtKeyUsageServerAuth, "elsewhere"))
	require.Error(t, check(server, x509.ExtKeyUsageClientAuth, ""))
	user := leaf(t, client)
	require.NoError(t, check(user, x509.ExtKeyUsageClientAuth, ""))
	require.Error(t, check(user, x509.ExtKeyUsageServerAuth, ""))
	require.Equal(t, "someone", user.Subject.CommonName)
	require.ElementsMatch(t, []string{"some", "groups"}, user.Subject.Organization)
	require.False(t, user.IsCA)
}

func TestASecondOpenFindsTheSameIdentity(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir)
	first, err := a.Client("client", "someone")
	require.NoError(t, err)
	before := leaf(t, first)
	key, err := a.SigningKey("tokens")
	require.NoError(t, err)
	bytes, err := os.ReadFile(key)
	require.NoError(t, err)

	b, _ := open(t, dir)
	second, err := b.Client("client", "someone")
	require.NoError(t, err)
	require.Equal(t, a.Certificate(), b.Certificate())
	require.Equal(t, before.SerialNumber, leaf(t, second).SerialNumber)
	key, err = b.SigningKey("tokens")
	require.NoError(t, err)
	again, err := os.ReadFile(key)
	require.NoError(t, err)
	require.Equal(t, bytes, again)
}

func TestTwoAuthoritiesDoNotTrustEachOther(t *testing.T) {
	_, pool := open(t, t.TempDir())
	b, _ := open(t, t.TempDir())
	other, err := b.Client("client", "someone")
	require.NoError(t, err)
	_, err = leaf(t, other).Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.Error(t, err)
}

func TestNobodyElseCanReadKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	a, _ := open(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
	info, err = os.Stat(a.KeyFile())
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
}

func TestWhatIsNoKeyIsToldWithItsPath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ca.key")
	require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
	_, err := pki.Open(dir, "test", now)
	require.ErrorContains(t, err, path)
}
