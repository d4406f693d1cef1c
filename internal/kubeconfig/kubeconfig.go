// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// maxSize is the largest kubeconfig that is read, in bytes. One context with a bundle of
// a hundred certificates is smaller.
const maxSize = 256 << 10

// Names inside the kubeconfig that is kept for a hub.
const (
	contextName      = "default-context"
	userName         = "default-auth"
	contextNamespace = "configuration"
)

// Config is the current context of a kubeconfig: one endpoint and at most one credential.
type Config struct {
	// ClusterEntry is the name of the cluster entry that the context uses. It
	// distinguishes a hub that was rebuilt under the same address.
	ClusterEntry string
	// Server is the https URL of the API server.
	Server string
	// ProxyURL is the http, https or socks5 proxy on the way there, or empty.
	ProxyURL string
	// TLSServerName is the name that the serving certificate is verified against, if it
	// is not the server's host.
	TLSServerName string
	// CAData is the CA bundle that verifies the server, in PEM. Empty means the roots of
	// the system.
	CAData []byte

	// Token is a bearer token, or empty.
	Token string
	// CertData and KeyData are a client certificate and its key in PEM, or nil.
	CertData, KeyData []byte

	// Files are where ReadFile found values that the kubeconfig only refers to.
	Files Files
}

// Files are paths beside a kubeconfig; empty for a value that the kubeconfig itself holds.
type Files struct{ CA, Token, Cert, Key string }

// file is the part of a kubeconfig that is accepted or explicitly rejected.
type file struct {
	APIVersion     string         `json:"apiVersion,omitempty"`
	Kind           string         `json:"kind,omitempty"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
	CurrentContext string         `json:"current-context"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User user   `json:"user"`
}

type namedContext struct {
	Name    string      `json:"name"`
	Context contextPart `json:"context"`
}

type cluster struct {
	Server        string `json:"server"`
	TLSServerName string `json:"tls-server-name,omitempty"`
	Insecure      bool   `json:"insecure-skip-tls-verify,omitempty"`
	CAFile        string `json:"certificate-authority,omitempty"`
	CAData        []byte `json:"certificate-authority-data,omitempty"`
	ProxyURL      string `json:"proxy-url,omitempty"`
}

type user struct {
	Token        string         `json:"token,omitempty"`
	TokenFile    string         `json:"tokenFile,omitempty"`
	CertFile     string         `json:"client-certificate,omitempty"`
	CertData     []byte         `json:"client-certificate-data,omitempty"`
	KeyFile      string         `json:"client-key,omitempty"`
	KeyData      []byte         `json:"client-key-data,omitempty"`
	Username     string         `json:"username,omitempty"`
	Password     string         `json:"password,omitempty"`
	As           string         `json:"as,omitempty"`
	AsUID        string         `json:"as-uid,omitempty"`
	AsGroups     []string       `json:"as-groups,omitempty"`
	Exec         map[string]any `json:"exec,omitempty"`
	AuthProvider map[string]any `json:"auth-provider,omitempty"`
}

type contextPart struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace,omitempty"`
}

// Parse reads a self-contained kubeconfig, such as that of the bootstrap secret. It fails
// on what the package comment lists as rejected; the message names the field and never
// contains a value of it.
func Parse(data []byte) (*Config, error) {
	return parse(data, references{})
}

// ParseSecret reads the hub kubeconfig from the data of its secret. The references
// tls.crt and tls.key mean the keys of the same data.
func ParseSecret(data map[string][]byte) (*Config, error) {
	if len(data[clusterv1.SecretKeyKubeconfig]) == 0 {
		return nil, fmt.Errorf("reading kubeconfig: key %s is missing or empty", clusterv1.SecretKeyKubeconfig)
	}
	return parse(data[clusterv1.SecretKeyKubeconfig], references{secret: data})
}

func parse(data []byte, r references) (*Config, error) {
	if len(data) > maxSize {
		return nil, fmt.Errorf("reading kubeconfig: %d bytes, at most %d are read", len(data), maxSize)
	}
	var f file
	if err := yaml.Unmarshal(data, &f); err != nil {
		// The parser's message may quote the content, which holds credentials.
		return nil, errors.New("reading kubeconfig: it is not valid YAML of a kubeconfig")
	}
	i := slices.IndexFunc(f.Contexts, func(c namedContext) bool { return c.Name == f.CurrentContext })
	if f.CurrentContext == "" || i < 0 {
		return nil, errors.New("reading kubeconfig: current-context names no context")
	}
	current := f.Contexts[i].Context
	c := &Config{ClusterEntry: current.Cluster}
	i = slices.IndexFunc(f.Clusters, func(e namedCluster) bool { return e.Name == current.Cluster })
	if i < 0 {
		return nil, errors.New("reading kubeconfig: the current context names no cluster entry")
	}
	if err := c.readCluster(f.Clusters[i].Cluster, r); err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	i = slices.IndexFunc(f.Users, func(e namedUser) bool { return e.Name == current.User })
	if i < 0 {
		return nil, errors.New("reading kubeconfig: the current context names no user entry")
	}
	if err := c.readUser(f.Users[i].User, r); err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	return c, nil
}

func (c *Config) readCluster(e cluster, r references) error {
	u, err := url.Parse(e.Server)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return errors.New("server must be a URL that starts with https://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("server must be a URL without user, query and fragment")
	case e.Insecure:
		return errors.New("insecure-skip-tls-verify is refused: give the hub's CA in certificate-authority-data")
	}
	if c.CAData, c.Files.CA, err = r.content(e.CAData, e.CAFile, ""); err != nil {
		return fmt.Errorf("certificate-authority: %w", err)
	}
	if len(c.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CAData) {
		return errors.New("certificate-authority-data holds no PEM certificate")
	}
	if e.ProxyURL != "" {
		p, err := url.Parse(e.ProxyURL)
		if err != nil || p.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, p.Scheme) {
			return errors.New("proxy-url must be a URL with scheme http, https or socks5")
		}
	}
	c.Server, c.ProxyURL, c.TLSServerName = e.Server, e.ProxyURL, e.TLSServerName
	return nil
}

func (c *Config) readUser(e user, r references) error {
	switch {
	case e.Exec != nil || e.AuthProvider != nil:
		return errors.New("exec and auth-provider are refused: a secret must not start programs")
	case e.As != "" || e.AsUID != "" || len(e.AsGroups) > 0:
		return errors.New("impersonation (as, as-uid, as-groups) is refused")
	case e.Username != "" || e.Password != "":
		return errors.New("username and password are not supported by Kubernetes any more")
	}
	token, path, err := r.content(nil, e.TokenFile, "")
	if err != nil {
		return fmt.Errorf("tokenFile: %w", err)
	}
	// As everywhere in Kubernetes, the file comes first.
	c.Token, c.Files.Token = cmp.Or(strings.TrimSpace(string(token)), e.Token), path
	if c.CertData, c.Files.Cert, err = r.content(e.CertData, e.CertFile, clusterv1.SecretKeyTLSCert); err != nil {
		return fmt.Errorf("client-certificate: %w", err)
	}
	if c.KeyData, c.Files.Key, err = r.content(e.KeyData, e.KeyFile, clusterv1.SecretKeyTLSKey); err != nil {
		return fmt.Errorf("client-key: %w", err)
	}
	if (len(c.CertData) == 0) != (len(c.KeyData) == 0) {
		return errors.New("client certificate and client key must be given together")
	}
	return nil
}

// Difference names the first field by which two kubeconfigs refer to different hubs, or
// is empty if they refer to the same one. A hub kubeconfig is only used while it refers
// to the hub of the bootstrap kubeconfig. The TLS server name is not compared: it only
// affects how a hub is verified.
func (c *Config) Difference(o *Config) string {
	switch {
	case c.Server != o.Server:
		return "server"
	case c.ProxyURL != o.ProxyURL:
		return "proxy-url"
	case !bytes.Equal(bytes.TrimSpace(c.CAData), bytes.TrimSpace(o.CAData)):
		return "certificate authority"
	case c.ClusterEntry != o.ClusterEntry:
		return "cluster entry of the context"
	}
	return ""
}

// ID returns a digest of everything that Difference compares, to be stored with something
// that belongs to one hub.
func (c *Config) ID() string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(c.Server), []byte(c.ProxyURL), bytes.TrimSpace(c.CAData), []byte(c.ClusterEntry)} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// HubHash returns the hex SHA-256 of a server URL: the prefix of AppliedManifestWork
// names and part of managed namespaces' labels.
func HubHash(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:])
}

// Kept returns the kubeconfig that is stored for the hub of c: the same endpoint, and
// credentials as references to tls.crt and tls.key of the same secret. Unlike other
// agents' it keeps the TLS server name.
func (c *Config) Kept() ([]byte, error) {
	return c.with(userName, user{CertFile: clusterv1.SecretKeyTLSCert, KeyFile: clusterv1.SecretKeyTLSKey}, contextName, contextNamespace)
}

// KeptToken returns the kubeconfig that is stored for an add-on with a token: as Kept,
// with a reference to the token in the same secret.
func (c *Config) KeptToken() ([]byte, error) {
	return c.with(userName, user{TokenFile: addonv1alpha1.SecretKeyToken}, contextName, contextNamespace)
}

// WithTokenFile returns the kubeconfig with which a hosted agent reaches its managed cluster: the
// endpoint of c, with a reference to the token in the same secret.
func (c *Config) WithTokenFile() ([]byte, error) {
	e := c.Endpoint()
	e.ClusterEntry = "cluster"
	return e.with("user", user{TokenFile: addonv1alpha1.SecretKeyToken}, "context", "")
}

// WithToken returns a self-contained kubeconfig for the endpoint of c and a bearer token,
// in the form of a bootstrap secret.
func (c *Config) WithToken(token string) ([]byte, error) {
	return c.with("bootstrap", user{Token: token}, "bootstrap", "")
}

// Endpoint returns c without credentials.
func (c *Config) Endpoint() *Config {
	return &Config{ClusterEntry: c.ClusterEntry, Server: c.Server, ProxyURL: c.ProxyURL, TLSServerName: c.TLSServerName, CAData: c.CAData}
}

// with returns a kubeconfig for the endpoint of c with a user and a context of these names.
func (c *Config) with(name string, u user, context, namespace string) ([]byte, error) {
	out, err := yaml.Marshal(file{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters: []namedCluster{{Name: c.ClusterEntry, Cluster: cluster{
			Server: c.Server, ProxyURL: c.ProxyURL, TLSServerName: c.TLSServerName, CAData: c.CAData,
		}}},
		Users:          []namedUser{{Name: name, User: u}},
		Contexts:       []namedContext{{Name: context, Context: contextPart{Cluster: c.ClusterEntry, User: name, Namespace: namespace}}},
		CurrentContext: context,
	})
	if err != nil {
		return nil, fmt.Errorf("building kubeconfig: %w", err)
	}
	return out, nil
}
