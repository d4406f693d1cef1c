// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

// serves starts a server with a certificate of that authority for some addresses, and returns where it is.
func serves(t *testing.T, authority *pki.Authority, name string, addresses ...net.IP) string {
	t.Helper()
	pair, err := authority.Serving(name, []string{"kubernetes"}, addresses)
	require.NoError(t, err)
	cert, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestAnotherServerAtThePublishedAddressIsToldFromAWrongCertificate(t *testing.T) {
	ours, err := pki.Open(t.TempDir(), "ours", time.Now())
	require.NoError(t, err)
	others, err := pki.Open(t.TempDir(), "egress", time.Now())
	require.NoError(t, err)
	here := net.IPv4(127, 0, 0, 1)
	right, wrongName := serves(t, ours, "right", here), serves(t, ours, "unnamed")
	foreign, foreignNoName := serves(t, others, "right", here), serves(t, others, "unnamed")
	ca := ours.Certificate()

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
