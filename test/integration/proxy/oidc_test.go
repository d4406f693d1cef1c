// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// provider is an OpenID provider whose users the hub knows. It serves until the process ends.
type provider struct {
	server *httptest.Server
	key    *ecdsa.PrivateKey
	caFile string
}

const oidcClient = "hub"

// newProvider starts a provider.
func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p := &provider{key: key}
	public, err := key.PublicKey.Bytes() // a byte that says how, then both coordinates
	require.NoError(t, err)
	x, y := public[1:1+len(public)/2], public[1+len(public)/2:]
	mux := http.NewServeMux()
	p.server = httptest.NewTLSServer(mux)
	serve := func(path string, document map[string]any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(document)
		})
	}
	serve("/.well-known/openid-configuration", map[string]any{
		"issuer": p.server.URL, "jwks_uri": p.server.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
	})
	serve("/keys", map[string]any{"keys": []any{map[string]any{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "one", "x": url64(x), "y": url64(y),
	}}})
	p.caFile = filepath.Join(t.TempDir(), "ca.crt") // which API servers read once
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	require.NoError(t, os.WriteFile(p.caFile, ca, 0o600))
	return p
}

func url64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// trusted makes an API server trust the provider. Its users and groups have a prefix.
func (p *provider) trusted() harness.Option {
	return harness.APIServer("--oidc-issuer-url="+p.server.URL, "--oidc-client-id="+oidcClient, "--oidc-ca-file="+p.caFile,
		"--oidc-signing-algs=ES256", "--oidc-username-claim=email", "--oidc-username-prefix=oidc:", "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:")
}

// token returns a token of a user for an audience that ends then.
func (p *provider) token(t *testing.T, audience, email string, ends time.Time, groups ...string) string {
	t.Helper()
	encode := func(part map[string]any) string {
		raw, err := json.Marshal(part)
		require.NoError(t, err)
		return url64(raw)
	}
	text := encode(map[string]any{"alg": "ES256", "kid": "one", "typ": "JWT"}) + "." + encode(map[string]any{
		"iss": p.server.URL, "aud": audience, "sub": "1", "email": email, "groups": groups, "iat": ends.Add(-time.Hour).Unix(), "exp": ends.Unix(),
	})
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
	require.NoError(t, err)
	const half = 32
	signature := make([]byte, 2*half)
	r.FillBytes(signature[:half])
	s.FillBytes(signature[half:])
	return text + "." + url64(signature)
}

// TestAUserOfOIDC logs in at the hub with a token of a provider that the managed cluster does not
// know.
func TestAUserOfOIDC(t *testing.T) {
	s := start(t)
	s.join(t, "oidc")
	s.connect(t, "oidc")
	s.allow(t, "Group", "oidc:platform", "oidc")
	with := func(token string) *rest.Config {
		config := rest.AnonymousClientConfig(s.hub.Config)
		config.BearerToken, config.QPS = token, -1
		return through(config, "oidc")
	}
	later := time.Now().Add(time.Hour)
	who := awaitSelf(t, with(s.provider.token(t, oidcClient, "ann@example.com", later, "platform", "system:masters")))
	require.Equal(t, "oidc:ann@example.com", who.Username)
	require.ElementsMatch(t, []string{"oidc:platform", "oidc:system:masters", "system:authenticated"}, who.Groups)

	_, err := whoami(t, with(s.provider.token(t, oidcClient, "ben@example.com", later, "sales")))
	require.True(t, apierrors.IsForbidden(err), "the hub decides by their groups: %v", err)
	require.ErrorContains(t, err, fmt.Sprintf("User %q", "oidc:ben@example.com"))
	for what, token := range map[string]string{
		"a token for another program": s.provider.token(t, "another", "ann@example.com", later, "platform"),
		"a token that has ended":      s.provider.token(t, oidcClient, "ann@example.com", time.Now().Add(-time.Minute), "platform"),
	} {
		_, err := whoami(t, with(token))
		require.True(t, apierrors.IsUnauthorized(err), "%s: %v", what, err)
	}
	direct := with(s.provider.token(t, oidcClient, "ann@example.com", later, "platform"))
	direct.Host, direct.TLSClientConfig = s.spoke.Config.Host, rest.AnonymousClientConfig(s.spoke.Config).TLSClientConfig
	_, err = whoami(t, direct)
	require.True(t, apierrors.IsUnauthorized(err), "the managed cluster does not know the provider: %v", err)
}
