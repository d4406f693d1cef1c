// SPDX-License-Identifier: Apache-2.0

package certs_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
)

const (
	one = "one.ns.svc"
	two = "two.ns.svc"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func certificates(t *testing.T, raw []byte) []*x509.Certificate {
	t.Helper()
	var out []*x509.Certificate
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		out = append(out, c)
	}
	return out
}

// verify verifies a leaf as kube-apiserver does: against the bundle, by name.
func verify(t *testing.T, s certs.Set, leaf certs.Pair, name string, at time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(s.Bundle))
	_, err := certificates(t, leaf.Cert)[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at})
	require.NoError(t, err)
}

func ensure(t *testing.T, p certs.Policy, have certs.Set, at time.Time) (certs.Set, certs.Names) {
	t.Helper()
	s, changed, err := p.Ensure(have, []string{one, two}, at)
	require.NoError(t, err)
	return s, changed
}

func TestEverythingIsMadeOnceAndThenKept(t *testing.T) {
	p := certs.DefaultPolicy()
	first, changed := ensure(t, p, certs.Set{}, start)
	require.Equal(t, certs.Names{"signer", "bundle", one, two}, changed)
	verify(t, first, first.Leaves[one], one, start)
	verify(t, first, first.Leaves[two], two, start)
	signer := certificates(t, first.Signer.Cert)[0]
	require.Equal(t, "cluster-manager-webhook@1785585600", signer.Subject.CommonName)
	require.Equal(t, start.Add(365*24*time.Hour), signer.NotAfter)
	require.Equal(t, start.Add(30*24*time.Hour), certificates(t, first.Leaves[one].Cert)[0].NotAfter)

	second, changed := ensure(t, p, first, start.Add(time.Hour))
	require.Empty(t, changed)
	require.Equal(t, first, second)
	require.WithinDuration(t, start.Add(24*24*time.Hour), p.Next(first), time.Hour)
}

func TestLeavesAreRenewedAtEightyPercentUnderTheSameAuthority(t *testing.T) {
	p := certs.DefaultPolicy()
	first, _ := ensure(t, p, certs.Set{}, start)
	_, changed := ensure(t, p, first, start.Add(23*24*time.Hour))
	require.Empty(t, changed)
	later, changed := ensure(t, p, first, start.Add(25*24*time.Hour))
	require.Equal(t, certs.Names{one, two}, changed)
	require.Equal(t, first.Bundle, later.Bundle)
}

func TestANewAuthorityStandsBesideTheOldOne(t *testing.T) {
	p := certs.DefaultPolicy()
	first, _ := ensure(t, p, certs.Set{}, start)
	at := start.Add(300 * 24 * time.Hour)
	second, changed := ensure(t, p, first, at)
	require.Equal(t, certs.Names{"signer", "bundle", one, two}, changed)
	all := certificates(t, second.Bundle)
	require.Len(t, all, 2)
	require.True(t, all[0].Equal(certificates(t, second.Signer.Cert)[0]), "the newest comes first")
	verify(t, second, second.Leaves[one], one, at)

	// A leaf that is not due is kept: clients learn of the new authority first.
	kept, changed := ensure(t, p, certs.Set{Bundle: second.Bundle, Leaves: second.Leaves}, at)
	require.Equal(t, certs.Names{"signer", "bundle"}, changed)
	verify(t, kept, kept.Leaves[one], one, at)
	require.Equal(t, second.Leaves, kept.Leaves)

	third, _ := ensure(t, p, second, start.Add(380*24*time.Hour))
	require.Len(t, certificates(t, third.Bundle), 1, "an authority that has ended is dropped")
}

func TestALeafNeverOutlivesItsAuthority(t *testing.T) {
	p := certs.Policy{SignerLife: time.Hour, LeafLife: 24 * time.Hour, RotateAt: 0.8}
	s, _ := ensure(t, p, certs.Set{}, start)
	require.Equal(t, certificates(t, s.Signer.Cert)[0].NotAfter, certificates(t, s.Leaves[one].Cert)[0].NotAfter)
}

func TestBrokenPartsAreMadeAnew(t *testing.T) {
	p := certs.DefaultPolicy()
	good, _ := ensure(t, p, certs.Set{}, start)
	other, _ := ensure(t, p, certs.Set{}, start)
	for name, tc := range map[string]struct {
		spoil func(*certs.Set)
		want  certs.Names
	}{
		"a leaf is missing": {func(s *certs.Set) { delete(s.Leaves, one) }, certs.Names{one}},
		"a leaf is no certificate": {
			func(s *certs.Set) { s.Leaves[one] = certs.Pair{Cert: []byte("x"), Key: []byte("y")} },
			certs.Names{one},
		},
		"a leaf has another's name":      {func(s *certs.Set) { s.Leaves[one] = s.Leaves[two] }, certs.Names{one}},
		"a leaf is of another authority": {func(s *certs.Set) { s.Leaves[two] = other.Leaves[two] }, certs.Names{two}},
		"key and certificate differ": {func(s *certs.Set) {
			s.Leaves[two] = certs.Pair{Cert: s.Leaves[two].Cert, Key: s.Leaves[one].Key}
		}, certs.Names{two}},
		"the bundle is rubbish": {func(s *certs.Set) { s.Bundle = []byte("rubbish") }, certs.Names{"bundle"}},
		"the signer is gone": {
			func(s *certs.Set) { s.Signer = certs.Pair{} },
			certs.Names{"signer", "bundle"},
		},
		"signer and bundle are gone": {
			func(s *certs.Set) { s.Signer, s.Bundle = certs.Pair{}, nil },
			certs.Names{"signer", "bundle", one, two},
		},
		"the signer is no signer": {
			func(s *certs.Set) { s.Signer = s.Leaves[one] },
			certs.Names{"signer", "bundle"},
		},
		"nothing":                   {func(*certs.Set) {}, nil},
		"a name that is not wanted": {func(s *certs.Set) { s.Leaves["three"] = other.Leaves[one] }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			have := certs.Set{Signer: good.Signer, Bundle: good.Bundle, Leaves: map[string]certs.Pair{
				one: good.Leaves[one],
				two: good.Leaves[two],
			}}
			tc.spoil(&have)
			got, changed := ensure(t, p, have, start)
			require.Equal(t, tc.want, changed)
			verify(t, got, got.Leaves[one], one, start)
			verify(t, got, got.Leaves[two], two, start)
			require.Len(t, got.Leaves, 2)
		})
	}
}

func TestACertificateIsForAllNamesOfItsServer(t *testing.T) {
	plain, _ := ensure(t, certs.DefaultPolicy(), certs.Set{}, start)
	p := certs.DefaultPolicy()
	p.Aliases = map[string][]string{two: {"two.elsewhere.svc", "10.0.0.1", "two.elsewhere.svc.cluster.local"}}
	got, changed := ensure(t, p, plain, start)
	require.Equal(t, certs.Names{two}, changed, "the one that lacks its names is replaced, and no other")
	for _, name := range append([]string{two}, p.Aliases[two]...) {
		verify(t, got, got.Leaves[two], name, start)
	}
	_, changed = ensure(t, p, got, start)
	require.Empty(t, changed)
}

func TestABookServesByName(t *testing.T) {
	s, _ := ensure(t, certs.DefaultPolicy(), certs.Set{}, start)
	b := certs.NewBook(one, two)
	_, err := b.Certificate(&tls.ClientHelloInfo{ServerName: one})
	require.Error(t, err)
	require.NoError(t, b.Put(one, s.Leaves[one]))
	select {
	case <-b.Filled():
		t.Fatal("one of two is not full")
	default:
	}
	require.NoError(t, b.Put(two, s.Leaves[two]))
	<-b.Filled()
	require.Error(t, b.Put(two, certs.Pair{}), "a broken pair is refused and the good one stays")
	for asked, want := range map[string]string{one: one, two: two, "": one} {
		c, err := b.Certificate(&tls.ClientHelloInfo{ServerName: asked})
		require.NoError(t, err)
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		require.NoError(t, err)
		require.Equal(t, []string{want}, leaf.DNSNames)
	}
	_, err = b.Certificate(&tls.ClientHelloInfo{ServerName: "other"})
	require.ErrorContains(t, err, "other")
	require.Equal(t, start.Add(30*24*time.Hour), b.Expiries()[one])
}
