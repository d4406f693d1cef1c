// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// port returns the name of the cluster's interface on the bridge.
func (c *Cluster) port() string { return fmt.Sprintf("port%d", c.index) }

// plug connects the cell to the fabric. The default route leads nowhere, but without one
// there is no route to Services, whose addresses are rewritten only after the route
// lookup.
func (c *Cluster) plug(ctx context.Context) error {
	cable := fmt.Sprintf("link add %s type veth peer name eth0 netns %d", c.port(), c.cell.pid)
	err := c.fabric.switched.ip(ctx, cable, fmt.Sprintf("link set %s master fabric", c.port()), fmt.Sprintf("link set %s up", c.port()))
	if err != nil {
		return err
	}
	err = c.cell.ip(ctx, "link set lo up", fmt.Sprintf("addr add %s/24 dev eth0", c.Address),
		fmt.Sprintf("addr add %s/24 dev eth0", c.secondAddress()), "link set eth0 up", "route add default dev eth0")
	if err != nil {
		return err
	}
	return c.cell.within("net", func() error {
		for _, setting := range []string{"ip_forward", "conf/all/route_localnet"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+setting, []byte("1"), 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// Cut takes the cluster off the fabric, as if its cable were pulled: packets to and from
// other clusters are lost, without any error inside.
func (c *Cluster) Cut(ctx context.Context) error {
	if err := c.fabric.switched.ip(ctx, fmt.Sprintf("link set %s down", c.port())); err != nil {
		return fmt.Errorf("cutting %s off: %w", c.Name, err)
	}
	return nil
}

// Heal ends a Cut.
func (c *Cluster) Heal(ctx context.Context) error {
	if err := c.fabric.switched.ip(ctx, fmt.Sprintf("link set %s up", c.port())); err != nil {
		return fmt.Errorf("healing %s: %w", c.Name, err)
	}
	return nil
}

// Run runs a command in the cluster's network and waits for it. It sees the machine's
// files; the caller sets its streams, environment and folder.
func (c *Cluster) Run(command *exec.Cmd) error { return c.cell.run(command) }

// Exec runs a program in the cluster's network with KUBECONFIG set to the administrator's
// file and a discovery cache in the cluster's folder, and returns its standard output.
// The error of a failed program holds its exit code and its standard error.
func (c *Cluster) Exec(ctx context.Context, argv ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	if err := c.execute(ctx, &stdout, &stderr, argv); err != nil {
		return stdout.String(), fmt.Errorf("running %s on %s: %w\n%s", strings.Join(argv, " "), c.Name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

func (c *Cluster) execute(ctx context.Context, stdout, stderr io.Writer, argv []string) error {
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBECACHEDIR="+c.file("cache"))
	command.Stdout, command.Stderr = stdout, stderr
	return c.Run(command)
}

// Kubectl runs kubectl as the cluster's administrator; see Exec.
func (c *Cluster) Kubectl(ctx context.Context, arguments ...string) (string, error) {
	return c.Exec(ctx, append([]string{c.fabric.binaries.Kubectl}, arguments...)...)
}

// Follow runs kubectl as Kubectl does, and writes what it prints to out as it
// comes, until it ends or ctx does.
func (c *Cluster) Follow(ctx context.Context, out io.Writer, arguments ...string) error {
	return c.execute(ctx, out, io.Discard, append([]string{c.fabric.binaries.Kubectl}, arguments...))
}

// Load imports an OCI archive into the node, under the name recorded in it.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	command := exec.CommandContext(ctx, "ctr", "--address", c.file("containerd.sock"), "--namespace", "k8s.io", "images", "import", archive)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("loading %s into %s: %w\n%s", archive, c.Name, err, bytes.TrimSpace(output))
	}
	return nil
}
