// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// cluster is the connection to a cluster of the agent.
type cluster struct {
	config *rest.Config
	http   *http.Client
	client dynamic.Interface
	ca     []byte
}

// connect prepares the connection to the cluster of the kubeconfig that a flag names; without a
// file, to that of the pod.
func connect(flag, file string) (*cluster, error) {
	cfg, err := configOf(flag, file)
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = userAgent()
	// API priority and fairness limits requests.
	cfg.QPS = -1
	c := &cluster{config: cfg, ca: cfg.CAData}
	if len(c.ca) == 0 && cfg.CAFile != "" {
		if c.ca, err = os.ReadFile(cfg.CAFile); err != nil {
			return nil, fmt.Errorf("reading the certificate authority of this cluster: %w", err)
		}
	}
	if c.http, err = rest.HTTPClientFor(cfg); err != nil {
		return nil, fmt.Errorf("connecting to this cluster: %w", err)
	}
	if c.client, err = dynamic.NewForConfigAndClient(cfg, c.http); err != nil {
		return nil, fmt.Errorf("connecting to this cluster: %w", err)
	}
	return c, nil
}

// configOf returns the client configuration. What the kubeconfig refers to is read again when
// it changes.
func configOf(flag, file string) (*rest.Config, error) {
	if file == "" {
		return inpod.Config()
	}
	c, err := kubeconfig.ReadFile(inPod(file))
	if err != nil {
		return nil, fmt.Errorf("--%s=%s: %w", flag, file, err)
	}
	cfg := &rest.Config{
		Host: c.Server, BearerToken: c.Token,
		TLSClientConfig: rest.TLSClientConfig{ServerName: c.TLSServerName, CAData: c.CAData, CertData: c.CertData, KeyData: c.KeyData},
	}
	cfg.Wrap(kubeconfig.Direct)
	if c.Files.Cert != "" && c.Files.Key != "" {
		cfg.CertData, cfg.KeyData, cfg.CertFile, cfg.KeyFile = nil, nil, c.Files.Cert, c.Files.Key
	}
	if c.Files.Token != "" {
		cfg.BearerToken = ""
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return bearer{c.Files.Token, next} })
	}
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("--%s=%s: proxy-url is not a URL", flag, file)
		}
		cfg.Proxy = http.ProxyURL(proxy)
	}
	return cfg, nil
}

// bearer sends the token that a file holds at the moment: the one before may end with its
// ServiceAccount, long before client-go would read the file again.
type bearer struct {
	file string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(b.file)
	if err != nil {
		return nil, fmt.Errorf("reading the token of the managed cluster: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return b.next.RoundTrip(r)
}

// inPod returns where a path of the command line is for this process.
func inPod(path string) string {
	if filepath.IsAbs(path) {
		return inpod.Path(path)
	}
	return path
}
