// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// marker represents a credential in the seeds; no error may contain it.
const marker = "fuzz-marker-credential"

// FuzzReadSecret checks every kubeconfig that is accepted: it refers to one https server,
// starts no program, reads no file, impersonates no user, and its kept form refers to the
// same hub.
func FuzzReadSecret(f *testing.F) {
	for _, seed := range []struct{ cluster, user string }{
		{"server: 'https://hub:6443'", "token: " + marker},
		{
			"server: 'https://hub', proxy-url: 'socks5://p:1', tls-server-name: n",
			"client-certificate: tls.crt, client-key: tls.key",
		},
		{"server: 'https://hub'", "exec: {command: rm, apiVersion: client.authentication.k8s.io/v1}"},
		{"server: 'https://hub'", "auth-provider: {name: x}, token: " + marker},
		{"server: 'https://hub'", "tokenFile: /etc/passwd"},
		{"server: 'https://hub'", "username: u, password: " + marker},
		{"server: 'https://hub'", "as: system:admin, token: " + marker},
		{"server: 'https://hub', certificate-authority: ../ca", "client-key-data: " + marker},
		{"server: 'https://hub', insecure-skip-tls-verify: true", "client-certificate: ../../tls.crt"},
		{"server: 'http://hub'", ""},
	} {
		f.Add(document(seed.cluster, seed.user))
	}
	f.Add([]byte("a: &a [*a, *a]\n" + strings.Repeat("b: [*a]\n", 50)))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		data := map[string][]byte{"kubeconfig": raw, "tls.crt": []byte("cert"), "tls.key": []byte("key")}
		for _, read := range []func() (*Config, error){
			func() (*Config, error) { return Parse(raw) },
			func() (*Config, error) { return ParseSecret(data) },
		} {
			c, err := read()
			if err != nil {
				require.Nil(t, c)
				require.NotContains(t, err.Error(), marker)
				require.Less(t, len(err.Error()), 300, "an error quotes nothing of the content")
				continue
			}
			require.LessOrEqual(t, len(raw), maxSize)
			require.True(t, strings.HasPrefix(strings.ToLower(c.Server), "https://"))
			require.Equal(t, len(c.CertData) == 0, len(c.KeyData) == 0)
			text, err := c.Kept()
			require.NoError(t, err)
			kept, err := ParseSecret(map[string][]byte{"kubeconfig": text, "tls.crt": []byte("cert"), "tls.key": []byte("key")})
			require.NoError(t, err)
			require.Empty(t, c.Difference(kept))
			require.Equal(t, c.ID(), kept.ID())
			require.Equal(t, c.TLSServerName, kept.TLSServerName)
			require.Empty(t, kept.Token, "what is kept names the certificate, not the token")
		}
	})
}

func TestAKubeconfigThatIsTooLargeIsNotRead(t *testing.T) {
	_, err := Parse([]byte(strings.Repeat("#", maxSize+1)))
	require.ErrorContains(t, err, "at most 262144 are read")
}
