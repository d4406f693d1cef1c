// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

const goodToken = "abcdef.0123456789abcdef"

func authority(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(1),
		NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestAPinKeepsOnlyTheCertificateThatIsMeant(t *testing.T) {
	a, b := authority(t, "a"), authority(t, "b")
	certs, err := Certificates(a)
	require.NoError(t, err)
	pinned, err := selectByHash(append(append([]byte{}, b...), a...), Hash(certs[0]))
	require.NoError(t, err)
	require.Equal(t, string(a), string(pinned))
	_, err = selectByHash(b, Hash(certs[0]))
	require.ErrorContains(t, err, "expected "+Hash(certs[0]))
	_, err = selectByHash([]byte("no certificate"), Hash(certs[0]))
	require.Error(t, err)
	require.NoError(t, CheckHash(Hash(certs[0])))
	for _, wrong := range []string{"", "sha256:", "sha256:ab", "md5:" + Hash(certs[0])[7:],
		"SHA256:" + Hash(certs[0])[7:]} {
		require.Error(t, CheckHash(wrong), wrong)
	}
}

// sign returns the signature that kube-controller-manager puts into cluster-info.
func sign(content, id, secret string) string {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"` + id + `"}`))
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(header + "." + base64.RawURLEncoding.EncodeToString([]byte(content))))
	return header + ".." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestABootstrapTokenProvesTheCA(t *testing.T) {
	content, err := BootstrapKubeconfig(Endpoint{Server: "https://hub", CA: authority(t, "a")}, "")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		signature string
		signed    bool
		wrong     bool
	}{
		"no signature":            {"", false, false},
		"the right one":           {sign(string(content), "abcdef", "0123456789abcdef"), true, false},
		"of another secret":       {sign(string(content), "abcdef", "0123456789abcdee"), false, true},
		"of another content":      {sign("other", "abcdef", "0123456789abcdef"), false, true},
		"of another token":        {sign(string(content), "abcdeg", "0123456789abcdef"), false, true},
		"not in two parts":        {"abc", false, true},
		"with the content inside": {"e30.e30.e30", false, true},
		"with an unknown algorithm": {
			base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"abcdef"}`)) + "..",
			false,
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string]any{"kubeconfig": string(content)}
			if tc.signature != "" {
				data["jws-kubeconfig-abcdef"] = tc.signature
			}
			info, err := ParseInfo(&unstructured.Unstructured{Object: map[string]any{"data": data}}, goodToken)
			if tc.wrong {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.signed, info.signed)
			require.Equal(t, "https://hub", info.Server)
		})
	}
}

// TestNoTokenIsSentBeforeTheCAIsKnown records everything that a server receives while the CA
// is being discovered.
func TestNoTokenIsSentBeforeTheCAIsKnown(t *testing.T) {
	var heard []string
	publish := true
	var content []byte
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		heard = append(heard, q.Header.Get("Authorization"))
		if !publish || q.URL.Path == "/version" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "cluster-info",
		},
			"data": map[string]any{"kubeconfig": string(content)}})
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var err error
	content, err = BootstrapKubeconfig(Endpoint{Server: server.URL, CA: ca}, "")
	require.NoError(t, err)

	d, err := Discover(context.Background(), Endpoint{Server: server.URL}, goodToken, "")
	require.NoError(t, err)
	require.Equal(t, string(ca), string(d.CA))
	require.NotEmpty(t, d.Warning, "nothing proves it")
	d, err = Discover(context.Background(), Endpoint{Server: server.URL}, goodToken, Hash(server.Certificate()))
	require.NoError(t, err)
	require.Empty(t, d.Warning)

	content, err = BootstrapKubeconfig(Endpoint{Server: server.URL, CA: authority(t, "other")}, "")
	require.NoError(t, err)
	_, err = Discover(context.Background(), Endpoint{Server: server.URL}, goodToken, "")
	var e *fleet.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, fleet.Refused, e.Kind)
	publish = false
	_, err = Discover(context.Background(), Endpoint{Server: server.URL}, goodToken, "")
	require.ErrorAs(t, err, &e)
	require.Equal(t, fleet.Refused, e.Kind)
	require.Equal(t, NameHubCA.With(), e.Fix)
	for _, authorization := range heard {
		require.Empty(t, authorization)
	}
}

// TestAPublicCAIsPinnedByItsHash reruns itself in a process that has the CA of the test server
// among the system's roots, because a process reads those only once.
func TestAPublicCAIsPinnedByItsHash(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	const inner = "OCM_TEST_WITH_ROOTS"
	if os.Getenv(inner) == "" {
		roots := filepath.Join(t.TempDir(), "roots.pem")
		require.NoError(t, os.WriteFile(roots, ca, 0o600))
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		again.Env = append(os.Environ(), inner+"=1", "SSL_CERT_FILE="+roots)
		out, err := again.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	d, err := Discover(t.Context(), Endpoint{Server: server.URL}, goodToken, "")
	require.NoError(t, err)
	require.Empty(t, d.CA, "without a hash the system's roots are trusted")
	d, err = Discover(t.Context(), Endpoint{Server: server.URL}, goodToken, Hash(server.Certificate()))
	require.NoError(t, err)
	require.Equal(t, string(ca), string(d.CA), "what is stored pins")
	_, err = Discover(t.Context(), Endpoint{Server: server.URL}, goodToken,
		Hash(server.Certificate())[:len(HashPrefix)]+strings.Repeat("0", 64))
	var e *fleet.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, fleet.Refused, e.Kind)
}

// TestNoRedirectMovesTrust has a server that redirects all that it is asked to another one, which
// would answer.
func TestNoRedirectMovesTrust(t *testing.T) {
	var heard atomic.Int32
	var content []byte
	thief := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		heard.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cluster-info"},
			"data": map[string]any{"kubeconfig": string(content)}})
	}))
	defer thief.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		hostile := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, thief.URL+q.URL.Path, code)
		}))
		defer hostile.Close()
		both := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hostile.Certificate().Raw})
		both = append(both, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: thief.Certificate().Raw})...)
		var err error
		content, err = BootstrapKubeconfig(Endpoint{Server: hostile.URL, CA: both}, "")
		require.NoError(t, err)

		_, err = Discover(t.Context(), Endpoint{Server: hostile.URL}, goodToken, "")
		require.ErrorContains(t, err, "the token was not sent")
		require.ErrorContains(t, err, "redirects to another address")
		_, err = Discover(t.Context(), Endpoint{Server: hostile.URL, CA: both}, goodToken, "")
		require.ErrorContains(t, err, "redirects to another address")
		c, err := Connect(Endpoint{Server: hostile.URL, CA: both}, goodToken)
		require.NoError(t, err)
		_, err = Published(t.Context(), c)
		require.ErrorContains(t, err, "redirects to another address")
		_, err = c.Get(t.Context(), "/version")
		require.ErrorContains(t, err, "redirects to another address")
	}
	require.Zero(t, heard.Load(), "nobody else is asked")
}

func TestTheBootstrapKubeconfigIsOneThatAgentsTake(t *testing.T) {
	e := Endpoint{Server: "https://hub:6443", CA: authority(t, "a"), ProxyURL: "http://proxy:3128"}
	raw, err := BootstrapKubeconfig(e, goodToken)
	require.NoError(t, err)
	c, err := kubeconfig.Parse(raw)
	require.NoError(t, err)
	require.Equal(t, kubeconfig.Config{ClusterEntry: "hub", Server: e.Server, ProxyURL: e.ProxyURL, CAData: c.CAData,
		Token: goodToken}, *c)
}

func TestABootstrapTokenHasItsForm(t *testing.T) {
	_, _, ok := bootstrapToken("abcdef.0123456789abcdeF")
	require.False(t, ok)
}
