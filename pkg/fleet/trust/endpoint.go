// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Endpoint is how agents reach a hub.
type Endpoint struct {
	// Server is the https URL of the API server.
	Server string
	// CA is the bundle that verifies the server; empty means the system's roots.
	CA []byte
	// ProxyURL is a forward proxy to the server; empty for none.
	ProxyURL string
}

// Connect returns a connection to the hub at e with a token. It follows no redirect: the token would
// be sent to whatever address the server names.
func Connect(e Endpoint, token string) (*fleet.Cluster, error) {
	config := &rest.Config{Host: e.Server, BearerToken: token, UserAgent: fleet.FieldManager, TLSClientConfig: rest.TLSClientConfig{CAData: e.CA}}
	config.Wrap(kubeconfig.Direct)
	if err := setProxy(config, e.ProxyURL); err != nil {
		return nil, err
	}
	return fleet.Connect(config, "")
}

// setProxy sends the requests of a connection through a forward proxy. Without one the
// environment variables apply, as everywhere in Kubernetes.
func setProxy(config *rest.Config, proxyURL string) error {
	if proxyURL == "" {
		return nil
	}
	u, err := url.Parse(proxyURL)
	if err != nil || u.Host == "" {
		return fleet.Misuse(fmt.Sprintf("%q cannot be a proxy", proxyURL), "it is not a URL", ExampleProxy.With())
	}
	config.Proxy = http.ProxyURL(u)
	return nil
}

// BootstrapKubeconfig returns the kubeconfig that an agent joins with: cluster hub, user and
// context bootstrap.
func BootstrapKubeconfig(e Endpoint, token string) ([]byte, error) {
	kc := clientcmdapi.NewConfig()
	kc.Clusters["hub"] = &clientcmdapi.Cluster{Server: e.Server, CertificateAuthorityData: e.CA, ProxyURL: e.ProxyURL}
	kc.AuthInfos["bootstrap"] = &clientcmdapi.AuthInfo{Token: token}
	kc.Contexts["bootstrap"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "bootstrap", Namespace: "default"}
	kc.CurrentContext = "bootstrap"
	raw, err := clientcmd.Write(*kc)
	if err != nil {
		return nil, fmt.Errorf("writing the bootstrap kubeconfig: %w", err)
	}
	return raw, nil
}

// OfHub returns how agents reach a hub that the caller is logged in to, and the hash that pins
// its CA ("" when its certificate is from a public CA). The address is that of the context; if
// that is only valid on this machine, it is the address that the hub publishes, unless that is
// too.
func OfHub(ctx context.Context, hub *fleet.Cluster) (Endpoint, string, error) {
	e := Endpoint{Server: hub.Server()}
	if IsLoopback(e.Server) {
		if info, err := Published(ctx, hub); err == nil && !IsLoopback(info.Server) {
			return withHash(ctx, Endpoint{Server: info.Server, CA: info.CA})
		}
	}
	ca, err := CAOf(hub.Config)
	if errors.Is(err, errInsecure) {
		ca, err = PublishedCA(ctx, hub)
	}
	if err != nil {
		return Endpoint{}, "", fleet.Fail("finding the CA of "+hub.String(), err, fleet.Advice("give the context of the hub a certificate-authority"))
	}
	e.CA = ca
	return withHash(ctx, e)
}

// withHash adds the hash of the CA that issued the server's certificate. A server that does not
// answer here may still answer the agents: then the hash is of the first CA of the bundle.
func withHash(ctx context.Context, e Endpoint) (Endpoint, string, error) {
	if len(e.CA) == 0 {
		return e, "", nil
	}
	cert, err := Root(ctx, e, "")
	if err == nil {
		return e, Hash(cert), nil
	}
	certs, err := Certificates(e.CA)
	if err != nil {
		return e, "", fleet.Fail("reading the CA of "+e.Server, err, nil)
	}
	return e, Hash(certs[0]), nil
}

// IsLoopback reports whether a server URL is only valid on this machine.
func IsLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// CheckURL returns why text cannot be the URL of an API server.
func CheckURL(what, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return fleet.Misuse(fmt.Sprintf("%q cannot be %s", text, what), "it is not an https URL", fleet.Advice("for example https://hub.example.org:6443"))
	}
	return nil
}
