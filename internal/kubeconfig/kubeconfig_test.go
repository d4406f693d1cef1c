// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func caPEM(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{
		CommonName: "ca",
	}, NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

const template = `apiVersion: v1
kind: Config
current-context: c
contexts:
- name: other
  context: {cluster: wrong, user: wrong}
- name: c
  context: {cluster: hub, user: u}
clusters:
- name: hub
  cluster: {CLUSTER}
users:
- name: u
  user: {USER}
`

func document(cluster, user string) []byte {
	s := strings.Replace(template, "{CLUSTER}", "{"+cluster+"}", 1)
	return []byte(strings.Replace(s, "{USER}", "{"+user+"}", 1))
}

func TestParseReadsTheCurrentContext(t *testing.T) {
	ca := caPEM(t)
	got, err := Parse(document("server: 'https://hub:6443/p', proxy-url: 'http://proxy:3128', tls-server-name: hub.internal, certificate-authority-data: "+
		base64.StdEncoding.EncodeToString(ca), "token: secret"))
	require.NoError(t, err)
	want := &Config{ClusterEntry: "hub", Server: "https://hub:6443/p", ProxyURL: "http://proxy:3128",
		TLSServerName: "hub.internal", CAData: ca, Token: "secret"}
	require.Empty(t, cmp.Diff(want, got))
}

func TestParseRefuses(t *testing.T) {
	good := "server: 'https://hub'"
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"no YAML, and shows nothing of it": {[]byte("\t{token: hunter2"), "not valid YAML"},
		"a scalar":                         {[]byte("hunter2"), "not valid YAML"},
		"nothing":                          {nil, "current-context"},
		"too large":                        {[]byte(strings.Repeat("#", maxSize+1)), "at most"},
		"a context that is not there":      {[]byte("current-context: x"), "current-context"},
		"a cluster that is not there": {
			[]byte("current-context: x\ncontexts: [{name: x, context: {cluster: y}}]"),
			"no cluster entry",
		},
		"a user that is not there": {
			[]byte("current-context: x\ncontexts: [{name: x, context: {cluster: y, user: z}}]\n" +
				"clusters: [{name: y, cluster: {server: 'https://h'}}]"),
			"no user entry",
		},
		"plain http":             {document("server: 'http://hub'", "token: t"), "https"},
		"no server":              {document("", "token: t"), "https"},
		"credentials in the URL": {document("server: 'https://a:b@hub'", "token: t"), "without user"},
		"insecure": {
			document(good+", insecure-skip-tls-verify: true", "token: t"),
			"insecure-skip-tls-verify",
		},
		"a CA file": {document(good+", certificate-authority: /etc/ca.crt", "token: t"), "names a file"},
		"a CA that is none": {
			document(good+", certificate-authority-data: aGVsbG8=", "token: t"),
			"no PEM certificate",
		},
		"a proxy of another scheme": {document(good+", proxy-url: 'ftp://p'", "token: t"), "proxy-url"},
		"an exec plugin":            {document(good, "exec: {command: sh}"), "exec"},
		"an auth provider":          {document(good, "auth-provider: {name: gcp}"), "auth-provider"},
		"impersonation":             {document(good, "token: t, as: admin"), "impersonation"},
		"a password":                {document(good, "username: a, password: b"), "username"},
		"a token file":              {document(good, "tokenFile: /etc/passwd"), "tokenFile"},
		"a certificate file": {
			document(good, "client-certificate: tls.crt, client-key: tls.key"),
			"names a file",
		},
		"a certificate without a key": {document(good, "client-certificate-data: aGVsbG8="), "together"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.data)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestKeptKubeconfigReadsBackFromItsSecret(t *testing.T) {
	c := &Config{
		ClusterEntry:  "my-hub",
		Server:        "https://hub:6443",
		ProxyURL:      "https://proxy",
		TLSServerName: "hub.internal",
		CAData:        caPEM(t),
		Token:         "bootstrap",
	}
	raw, err := c.Kept()
	require.NoError(t, err)
	require.NotContains(t, string(raw), "bootstrap")
	for _, s := range []string{"name: my-hub", "current-context: default-context", "namespace: configuration", "user: default-auth",
		"client-certificate: tls.crt", "client-key: tls.key", "tls-server-name: hub.internal", "proxy-url: https://proxy"} {
		require.Contains(t, string(raw), s)
	}
	got, err := ParseSecret(map[string][]byte{"kubeconfig": raw, "tls.crt": []byte("cert"), "tls.key": []byte("key")})
	require.NoError(t, err)
	want := *c
	want.Token, want.CertData, want.KeyData = "", []byte("cert"), []byte("key")
	require.Empty(t, cmp.Diff(&want, got))
	require.Empty(t, got.Difference(c))

	_, err = ParseSecret(map[string][]byte{"kubeconfig": raw, "tls.crt": []byte("cert")})
	require.ErrorContains(t, err, "tls.key is missing")
	_, err = ParseSecret(map[string][]byte{"tls.crt": []byte("cert")})
	require.ErrorContains(t, err, "key kubeconfig is missing")
	_, err = Parse(raw)
	require.ErrorContains(t, err, "names a file")
}

func TestOnlyItsOwnKeysAreReadBesideAKubeconfig(t *testing.T) {
	raw := document("server: 'https://hub'", "client-certificate: ../../etc/passwd, client-key: tls.key")
	_, err := ParseSecret(map[string][]byte{"kubeconfig": raw, "../../etc/passwd": []byte("x"), "tls.key": []byte("key")})
	require.ErrorContains(t, err, "names a file")
}

func TestBootstrapKubeconfigReadsBack(t *testing.T) {
	c := &Config{ClusterEntry: "hub", Server: "https://hub:6443", CAData: caPEM(t)}
	raw, err := c.WithToken("t0ken")
	require.NoError(t, err)
	got, err := Parse(raw)
	require.NoError(t, err)
	c.Token = "t0ken"
	require.Empty(t, cmp.Diff(c, got))
}

func TestDifferenceAndID(t *testing.T) {
	base := Config{ClusterEntry: "hub", Server: "https://hub", ProxyURL: "http://p", CAData: []byte("ca"), TLSServerName: "n"}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"nothing":                  {func(*Config) {}, ""},
		"a new line after the CA":  {func(c *Config) { c.CAData = []byte("ca\n") }, ""},
		"the TLS server name only": {func(c *Config) { c.TLSServerName = "m" }, ""},
		"the credential only":      {func(c *Config) { c.Token = "t" }, ""},
		"the server":               {func(c *Config) { c.Server = "https://hub2" }, "server"},
		"the proxy":                {func(c *Config) { c.ProxyURL = "" }, "proxy-url"},
		"the CA":                   {func(c *Config) { c.CAData = []byte("cb") }, "certificate authority"},
		"the name of the entry":    {func(c *Config) { c.ClusterEntry = "rebuilt" }, "cluster entry of the context"},
	} {
		t.Run(name, func(t *testing.T) {
			other := base
			tc.change(&other)
			require.Equal(t, tc.want, base.Difference(&other))
			require.Equal(t, tc.want == "", base.ID() == other.ID())
		})
	}
}

func TestHubHash(t *testing.T) {
	require.Equal(t, "9f63aa51ee73742847a1dd584c640c8b579dc14418ab416e3dd716fbe9362d31", HubHash("https://hub:6443"))
}

func FuzzParse(f *testing.F) {
	f.Add(document("server: 'https://hub'", "token: t"))
	f.Add(document("server: 'https://hub', proxy-url: 'socks5://p'", "client-certificate: tls.crt, client-key: tls.key"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseSecret(map[string][]byte{"kubeconfig": data, "tls.crt": []byte("c"), "tls.key": []byte("k")})
		if err != nil {
			return
		}
		if !strings.HasPrefix(c.Server, "https://") {
			t.Fatalf("accepted server %q", c.Server)
		}
		raw, err := c.Kept()
		if err != nil {
			t.Fatalf("keeping what was accepted: %v", err)
		}
		again, err := ParseSecret(map[string][]byte{"kubeconfig": raw, "tls.crt": []byte("c"), "tls.key": []byte("k")})
		if err != nil {
			t.Fatalf("reading back what was kept: %v", err)
		}
		if d := c.Difference(again); d != "" {
			t.Fatalf("kept kubeconfig differs in %s", d)
		}
	})
}
