// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Endpoint is how agents reach a hub.
type Endpoint struct {
	// Server is the https URL of the API server.
	Server string
	// CA is the bundle that the server is trusted by; empty means the roots of
	// the system.
	CA []byte
	// ProxyURL is a forward proxy on the way, or empty.
	ProxyURL string
}

// redactedToken stands where a token would be.
const redactedToken = "REDACTED"

// bootstrapKubeconfig is what an agent joins with: cluster hub, user and context
// bootstrap (cli.md 2).
func bootstrapKubeconfig(e Endpoint, token string) ([]byte, error) {
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

// connectWith opens the hub at e with a token.
func connectWith(e Endpoint, token string) (*Cluster, error) {
	config := &rest.Config{Host: e.Server, BearerToken: token, UserAgent: FieldManager, TLSClientConfig: rest.TLSClientConfig{CAData: e.CA}}
	if err := setProxy(config, e.ProxyURL); err != nil {
		return nil, err
	}
	return Connect(config, "")
}

// setProxy sends the requests of a connection through a forward proxy. Without
// one the environment decides, as everywhere in Kubernetes.
func setProxy(config *rest.Config, proxyURL string) error {
	if proxyURL == "" {
		return nil
	}
	u, err := url.Parse(proxyURL)
	if err != nil || u.Host == "" {
		return usage(fmt.Sprintf("%q cannot be a proxy", proxyURL), "it is no URL", "for example --proxy-url http://proxy.example.org:3128")
	}
	config.Proxy = http.ProxyURL(u)
	return nil
}

// redactedValue returns what a dry run shows of a secret's value.
func redactedValue(key, text string, encoded bool) string {
	if key == "kubeconfig" {
		raw := []byte(text)
		if encoded {
			raw, _ = base64.StdEncoding.DecodeString(text)
		}
		if kc, err := clientcmd.Load(raw); err == nil {
			for _, user := range kc.AuthInfos {
				*user = clientcmdapi.AuthInfo{Token: redactedToken}
			}
			if out, err := clientcmd.Write(*kc); err == nil {
				text = string(out)
				if encoded {
					text = base64.StdEncoding.EncodeToString(out)
				}
				return text
			}
		}
	}
	if encoded {
		return base64.StdEncoding.EncodeToString([]byte(redactedToken))
	}
	return redactedToken
}
