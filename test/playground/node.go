// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/node"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

// Files of the process node in the cluster's folder.
const (
	egressSocket = "egress.sock"
	egressConfig = "egress.yaml"
	nodeConfig   = "node.json"
)

// egressSelector makes kube-apiserver reach Services, pods and nodes through
// the process node. The socket is relative to the working directory.
const egressSelector = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: ` + egressSocket + `
`

// hasNode reports whether the cluster has a process node.
func (c *Cluster) hasNode() bool { return len(c.config.Keeper) > 0 }

// writeNodeFiles writes the files that kube-apiserver and the node need from each other,
// before either starts.
func (c *Cluster) writeNodeFiles() error {
	if err := os.WriteFile(filepath.Join(c.Dir, egressConfig), []byte(egressSelector), 0o600); err != nil {
		return fmt.Errorf("writing egress configuration: %w", err)
	}
	serving, err := c.pki.authority.Serving("process-node", []string{c.Name}, []net.IP{node.Address()})
	if err != nil {
		return err
	}
	identity, err := c.pki.authority.Client("process-node-client", "process-node", "system:masters")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.Dir, "process-node.kubeconfig")
	if err := c.writeKubeconfig(kubeconfig, identity); err != nil {
		return err
	}
	images, err := absolute(c.config.Images)
	if err != nil {
		return err
	}
	c.node = node.Config{
		Name: c.Name, Version: KubernetesVersion, Dir: c.Dir, Kubeconfig: kubeconfig, Images: images,
		Socket: egressSocket, Serving: serving, ClientCA: c.pki.authority.CertFile(),
	}
	return c.writeNodeConfig()
}

// StopNode ends the process node and its pods, and removes what they have written. The Node object
// stays, and becomes unready after a time.
func (c *Cluster) StopNode() error {
	if err := errors.Join(c.Kill(ProcessNode), node.Clear(c.Dir)); err != nil {
		return fmt.Errorf("stopping the process node of %s: %w", c.Name, err)
	}
	return nil
}

// StartNode starts the process node after StopNode, with these images instead of those of the
// Config; it returns when pods can run.
func (c *Cluster) StartNode(ctx context.Context, images map[string]string) error {
	programs, err := absolute(images)
	if err != nil {
		return err
	}
	c.node.Images = programs
	if err := c.writeNodeConfig(); err != nil {
		return err
	}
	return c.Restart(ctx, ProcessNode)
}

func (c *Cluster) writeNodeConfig() error {
	data, err := json.MarshalIndent(c.node, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding node configuration: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, nodeConfig), data, 0o600); err != nil {
		return fmt.Errorf("writing node configuration: %w", err)
	}
	return nil
}

func absolute(images map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for name, path := range images {
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(full); err != nil {
			return nil, fmt.Errorf("looking for the program of image %s: %w", name, err)
		}
		out[name] = full
	}
	return out, nil
}

func (c *Cluster) nodeAPIArgs(kubelet pki.Pair) []string {
	return []string{
		"--egress-selector-config-file=" + filepath.Join(c.Dir, egressConfig),
		"--kubelet-client-certificate=" + kubelet.CertFile,
		"--kubelet-client-key=" + kubelet.KeyFile,
		"--kubelet-certificate-authority=" + c.pki.authority.CertFile(),
		"--kubelet-preferred-address-types=InternalIP",
	}
}
