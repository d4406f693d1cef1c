// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority is a certificate that is valid for two days, and its key in several forms.
func authority(t *testing.T, key crypto.Signer, ca bool) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: start.Add(-time.Hour), NotAfter: start.Add(48 * time.Hour),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestAuthority(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	sec1, err := x509.MarshalECPrivateKey(curve)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(curve)
	require.NoError(t, err)
	ca := authority(t, curve, true)
	for name, pair := range map[string][2][]byte{
		"SEC 1":  {ca, inPEM("EC PRIVATE KEY", sec1)},
		"PKCS#8": {ca, inPEM("PRIVATE KEY", pkcs8)},
		"PKCS#1": {authority(t, old, true), inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(old))},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ReadAuthority(pair[0], pair[1])
			require.NoError(t, err)
			signed, err := a.Sign(csr(t), 24*time.Hour, start)
			require.NoError(t, err)
			block, _ := pem.Decode(signed)
			c, err := x509.ParseCertificate(block.Bytes)
			require.NoError(t, err)
			require.NoError(t, c.CheckSignatureFrom(a.certificate))
			require.Equal(t, defaultUser, c.Subject.CommonName)
			require.ElementsMatch(t, []string{ownGroup, everybodysOwn}, c.Subject.Organization)
			require.Equal(t, []string{"web.addon.open-cluster-management.io"}, c.DNSNames)
			require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, c.ExtKeyUsage)
			require.False(t, c.IsCA)
			require.True(t, c.NotAfter.Equal(start.Add(24*time.Hour)))
		})
	}
	for want, pair := range map[string][2][]byte{
		"tls.crt: must be a certificate in PEM": {nil, inPEM("EC PRIVATE KEY", sec1)},
		"tls.crt: x509":                         {inPEM("CERTIFICATE", []byte("x")), nil},
		"CA:TRUE":                               {authority(t, curve, false), inPEM("EC PRIVATE KEY", sec1)},
		"tls.key: must be a private key":        {ca, inPEM("PRIVATE KEY", []byte("x"))},
		"in PEM, as PKCS#8":                     {ca, nil},
		"tls.key: is not the key of tls.crt":    {ca, inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(old))},
	} {
		_, err := ReadAuthority(pair[0], pair[1])
		require.ErrorContains(t, err, want)
	}
}

func TestLifeOfACertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	sec1, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	a, err := ReadAuthority(authority(t, key, true), inPEM("EC PRIVATE KEY", sec1))
	require.NoError(t, err)
	hour := int32(3600)
	for name, tc := range map[string]struct {
		asked *int32
		now   time.Time
		want  time.Time
	}{
		"that of the signer":           {nil, start, start.Add(24 * time.Hour)},
		"less, because it is asked":    {&hour, start, start.Add(time.Hour)},
		"no longer than the authority": {nil, start.Add(40 * time.Hour), start.Add(48 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			r := csr(t)
			r.Spec.ExpirationSeconds = tc.asked
			signed, err := a.Sign(r, 24*time.Hour, tc.now)
			require.NoError(t, err)
			block, _ := pem.Decode(signed)
			c, err := x509.ParseCertificate(block.Bytes)
			require.NoError(t, err)
			require.True(t, c.NotAfter.Equal(tc.want), c.NotAfter)
			require.True(t, c.NotBefore.Equal(tc.now.Add(-5*time.Minute)))
		})
	}
	_, err = a.Sign(csr(t), time.Hour, start.Add(49*time.Hour))
	require.ErrorContains(t, err, "the authority expired at 2030-01-04T03:00:00Z")
	broken := csr(t)
	block, _ := pem.Decode(broken.Spec.Request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	broken.Spec.Request = pem.EncodeToMemory(block)
	_, err = a.Sign(broken, time.Hour, start)
	require.ErrorContains(t, err, "signature")
	broken.Spec.Request = nil
	_, err = a.Sign(broken, time.Hour, start)
	require.ErrorContains(t, err, "reading it")
}
