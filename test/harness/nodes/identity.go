// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

// writeIdentities creates keys, certificates and kubeconfig files, and the client
// configuration of the administrator.
func (c *Cluster) writeIdentities() error {
	authority, err := pki.Open(filepath.Join(c.dir, "pki"), "kubernetes-ca-"+c.Name, time.Now())
	if err != nil {
		return err
	}
	c.CA = authority.Certificate()
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(c.firstService()), net.ParseIP(c.Address)}
	if _, err := authority.Serving("kube-apiserver", names, addresses); err != nil {
		return err
	}
	if _, err := authority.SigningKey("service-account"); err != nil {
		return err
	}
	if err := c.writeElsewhere(); err != nil {
		return err
	}
	// kube-apiserver calls aggregated APIs on behalf of users, with an authority of its own.
	front, err := pki.Open(c.pki("front-proxy"), "front-proxy-ca-"+c.Name, time.Now())
	if err != nil {
		return err
	}
	if _, err := front.Client("client", frontProxyName); err != nil {
		return err
	}
	for _, identity := range []struct {
		file, user string
		groups     []string
	}{
		{"admin", "kubernetes-admin", []string{"system:masters"}},
		{"kube-controller-manager", "system:kube-controller-manager", nil},
		{"kube-scheduler", "system:kube-scheduler", nil},
		{"kubelet", "system:node:" + c.Name, []string{"system:nodes"}},
		{"kube-proxy", "system:kube-proxy", nil},
	} {
		pair, err := authority.Client(identity.file, identity.user, identity.groups...)
		if err != nil {
			return err
		}
		if err := c.writeKubeconfig(c.file(identity.file+".kubeconfig"), pair); err != nil {
			return err
		}
	}
	c.Kubeconfig = c.file("admin.kubeconfig")
	return c.connect()
}

// connect creates the administrator's client.
func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.Dial = c.cell.dial
	config.QPS = -1 // no rate limit
	config.Timeout = 30 * time.Second
	c.Config = config
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return err
	}
	c.client, err = dynamic.NewForConfigAndClient(config, c.http)
	return err
}

// entry returns what a kubeconfig file needs to reach the cluster as a user.
func (c *Cluster) entry(user pki.Pair) (*clientcmdapi.Config, error) {
	certificate, err := os.ReadFile(user.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(user.KeyFile)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[c.Name] = &clientcmdapi.Cluster{Server: c.Server, CertificateAuthorityData: c.CA}
	config.AuthInfos[c.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: c.Name}
	config.CurrentContext = c.Name
	return config, nil
}

func (c *Cluster) writeKubeconfig(path string, user pki.Pair) error {
	config, err := c.entry(user)
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, path)
}

// WriteKubeconfig writes one kubeconfig file with a context for each cluster, named after
// it and with its administrator's rights. The first one is the current context.
func WriteKubeconfig(path string, clusters ...*Cluster) error {
	merged := clientcmdapi.NewConfig()
	for _, c := range clusters {
		one, err := clientcmd.LoadFromFile(c.Kubeconfig)
		if err != nil {
			return fmt.Errorf("reading kubeconfig of %s: %w", c.Name, err)
		}
		merged.Clusters[c.Name] = one.Clusters[c.Name]
		merged.AuthInfos[c.Name] = one.AuthInfos[c.Name]
		merged.Contexts[c.Name] = one.Contexts[c.Name]
	}
	if len(clusters) > 0 {
		merged.CurrentContext = clusters[0].Name
	}
	return clientcmd.WriteToFile(*merged, path)
}
