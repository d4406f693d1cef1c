// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

// Addresses inside a playground. They are virtual: no packet carries them.
const (
	// serviceRange holds cluster addresses of Services; firstService is that of
	// Service kubernetes.
	serviceRange = "10.96.0.0/16"
	firstService = "10.96.0.1"
	// advertised is a documentation address (RFC 5737): kube-apiserver refuses
	// loopback here, and nothing uses it.
	advertised = "192.0.2.1"
)

// stateFile holds the state of a cluster in its folder.
const stateFile = "state.json"

// state is what a later start must know.
type state struct {
	// Port of kube-apiserver on 127.0.0.1.
	Port int `json:"port"`
}

// choosePort reserves the port of an earlier start, or any free one.
func (c *Cluster) choosePort() error {
	path := filepath.Join(c.Dir, stateFile)
	known, err := readState(path)
	if err != nil {
		return err
	}
	hold, err := holdPort(known.Port)
	if err != nil {
		return err
	}
	c.hold, c.port = hold, hold.port
	c.Server = fmt.Sprintf("https://127.0.0.1:%d", c.port)
	data, err := json.Marshal(state{Port: c.port})
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), hold.release())
	}
	return nil
}

// readState reads a state file; without one the state is empty.
func readState(path string) (known state, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	if err != nil {
		return known, fmt.Errorf("reading %s: %w", path, err)
	}
	return known, nil
}

func (c *Cluster) makeCertificates() error {
	authority, err := pki.Open(filepath.Join(c.Dir, "pki"), "kubernetes-ca-"+c.Name, c.config.Clock.Now())
	if err != nil {
		return err
	}
	c.pki.authority = authority
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(firstService)}
	if c.pki.serving, err = authority.Serving("kube-apiserver", names, addresses); err != nil {
		return err
	}
	if c.pki.admin, err = authority.Client("admin", "kubernetes-admin", "system:masters"); err != nil {
		return err
	}
	// One identity with all rights instead of one ServiceAccount for each controller:
	// half the requests at start, and less memory.
	if c.pki.manager, err = authority.Client("kube-controller-manager", "system:kube-controller-manager", "system:masters"); err != nil {
		return err
	}
	front, err := pki.Open(filepath.Join(c.Dir, "pki", "front-proxy"), "front-proxy-ca-"+c.Name, c.config.Clock.Now())
	if err != nil {
		return err
	}
	c.pki.frontProxyCA = front.CertFile()
	if c.pki.frontProxy, err = front.Client("client", frontProxyName); err != nil {
		return err
	}
	c.pki.serviceAccount, err = authority.SigningKey("service-account")
	return err
}

// writeKubeconfig writes a self-contained kubeconfig file, mode 0600.
func (c *Cluster) writeKubeconfig(path string, user pki.Pair) error {
	certificate, err := os.ReadFile(user.CertFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(user.KeyFile)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[c.Name] = &clientcmdapi.Cluster{Server: c.Server, CertificateAuthorityData: c.CA}
	config.AuthInfos[c.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: c.Name}
	config.CurrentContext = c.Name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}
