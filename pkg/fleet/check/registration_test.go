// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// authority issues certificates of servers for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{}
	a.cert, a.key = a.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a authority) issue(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert, key
}

// server starts a server with a certificate for some addresses, and returns where it is.
func (a authority) server(t *testing.T, addresses ...net.IP) string {
	t.Helper()
	cert, key := a.issue(t, &x509.Certificate{IPAddresses: addresses, DNSNames: []string{"kubernetes"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestAnotherServerAtThePublishedAddressIsToldFromAWrongCertificate(t *testing.T) {
	ours, others, here := newAuthority(t, "ours"), newAuthority(t, "egress"), net.IPv4(127, 0, 0, 1)
	right, wrongName := ours.server(t, here), ours.server(t)
	foreign, foreignNoName := others.server(t, here), others.server(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ours.cert.Raw})

	for name, tc := range map[string]struct {
		published, own string
		severity       Severity
		title          string
	}{
		"all fits":                            {right, right, "", ""},
		"for clusters only":                   {"https://127.0.0.1:1", right, "", ""},
		"nothing answers":                     {"https://127.0.0.1:1", "https://127.0.0.1:1", "", ""},
		"not for that address":                {wrongName, right, SeverityError, "the certificate of " + wrongName + " is not for that address"},
		"only our address can be seen":        {"https://127.0.0.1:1", foreign, SeverityError, "did not issue the certificate of " + foreign},
		"another server":                      {foreign, right, SeverityWarning, "from this machine another server answers at " + foreign},
		"another server without a name":       {foreignNoName, right, SeverityWarning, "from this machine another server answers at " + foreignNoName},
		"the published CA is of another":      {foreign, foreign, SeverityError, "did not issue the certificate of " + foreign},
		"that, and it has no name either":     {foreignNoName, foreign, SeverityError, "did not issue the certificate of " + foreignNoName},
		"the hub's certificate has no name":   {wrongName, wrongName, SeverityError, "is not for that address"},
		"published nowhere, ours has no name": {"https://127.0.0.1:1", wrongName, SeverityError, "the certificate of " + wrongName},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := fleet.Connect(&rest.Config{Host: tc.own}, "hub")
			require.NoError(t, err)
			h := &hubCheck{checking: &checking{o: &Options{Hub: c}}}
			found := h.judgePublished(t.Context(), trust.Endpoint{Server: tc.published, CA: ca})
			if tc.title == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, tc.severity, found[0].Severity)
			require.Contains(t, found[0].Title, tc.title)
			require.NotEmpty(t, found[0].Cause)
			require.NotNil(t, found[0].Fix)
		})
	}
}
