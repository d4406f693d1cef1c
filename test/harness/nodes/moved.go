// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

// secondAddress returns the address of Cluster.Elsewhere. kube-apiserver chooses the
// certificate by it where a client names no server.
func (c *Cluster) secondAddress() string { return fmt.Sprintf("10.210.0.%d", 100+c.index) }

// writeElsewhere creates the authority of the second way and its certificate.
func (c *Cluster) writeElsewhere() error {
	authority, err := pki.Open(c.pki("elsewhere"), "elsewhere-ca-"+c.Name, time.Now())
	if err != nil {
		return err
	}
	address := c.secondAddress()
	c.Elsewhere = Way{Server: fmt.Sprintf("https://%s:%d", address, apiserverPort), CA: authority.Certificate(), CAFile: authority.CertFile()}
	_, err = authority.Serving("kube-apiserver", nil, []net.IP{net.ParseIP(address)})
	return err
}

// Abandon makes kube-apiserver's first address unreachable for other clusters, open
// connections included; Elsewhere keeps working.
func (c *Cluster) Abandon(ctx context.Context) error {
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(fmt.Sprintf(`table ip abandoned {
  chain input {
    type filter hook input priority filter; policy accept;
    iifname "eth0" ip daddr %s tcp dport %d drop
  }
}
`, c.Address, apiserverPort))
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	if err := c.Run(command); err != nil {
		return fmt.Errorf("abandoning the address of %s: %w: %s", c.Name, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// SignFor changes Options.SigningDuration of a running cluster.
func (c *Cluster) SignFor(ctx context.Context, life time.Duration) error {
	c.options.SigningDuration = life
	return c.Restart(ctx, ControllerManager)
}

// Replace stops the cluster and starts another one with the same name and addresses and
// everything else new, as after a disaster without a backup.
func (c *Cluster) Replace(ctx context.Context) (*Cluster, error) {
	if err := c.Stop(); err != nil {
		return nil, err
	}
	// The kernel removes the interface some time after the network it led to. An error
	// only means that it has done so already.
	_ = c.fabric.switched.ip(ctx, "link delete "+c.port())
	return c.fabric.Start(ctx, c.options)
}
