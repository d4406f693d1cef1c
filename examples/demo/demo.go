// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// The clusters of the demo; their contexts have the same names.
const hub = "hub"

var managed = []string{"cluster1", "cluster2"}

// images are the project's images and the packages of the programs in them.
var images = map[string]string{
	"ocm-hub": "./controllers/ocm-hub", "ocm-agent": "./controllers/ocm-agent", "webdemo": "./examples/webdemo",
}

// adminFile is the name of a cluster's kubeconfig file in its directory.
const adminFile = "admin.kubeconfig"

// tick is the interval at which to look for something that another process creates.
func tick() <-chan time.Time { return time.After(50 * time.Millisecond) }

// demo is one run of "demo up".
type demo struct {
	// dir holds the clusters, tools the programs of this checkout.
	dir, tools string
	// self is this program.
	self     string
	binaries playground.Binaries
	out      io.Writer
	start    time.Time
}

// newDemo finds the programs that the demo needs.
func newDemo(ctx context.Context, dir, kubernetes string) (*demo, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	binaries, err := findKubernetes(ctx, kubernetes)
	if err != nil {
		return nil, err
	}
	d := &demo{dir: dir, tools: filepath.Dir(self), self: self, binaries: binaries, out: os.Stdout, start: time.Now()}
	for _, program := range []string{"kubectl-ocm", "ocm-hub", "ocm-agent", "webdemo"} {
		if _, err := os.Stat(filepath.Join(d.tools, program)); err != nil {
			return nil, fmt.Errorf("finding %s beside this program: %w; start the demo with: make demo", program, err)
		}
	}
	if _, err := os.Stat(application); err != nil {
		return nil, fmt.Errorf("finding the demo's application: %w; run the demo from the root of the checkout", err)
	}
	return d, nil
}

// up starts the clusters and runs the commands.
func (d *demo) up(ctx context.Context) error {
	if err := remove(ctx, d.dir); err != nil {
		return err
	}
	if err := d.startClusters(ctx); err != nil {
		return errors.Join(err, remove(context.WithoutCancel(ctx), d.dir))
	}
	if err := d.play(ctx); err != nil {
		return fmt.Errorf("%w\nThe clusters are still running, for you to inspect: export KUBECONFIG=%s\nStop them with: make demo-down", err, d.kubeconfig())
	}
	return nil
}

func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "kubeconfig") }

// startClusters starts all clusters and writes one kubeconfig file with a context for each.
func (d *demo) startClusters(ctx context.Context) error {
	names := append([]string{hub}, managed...)
	fmt.Fprintf(d.out, "Starting three Kubernetes %s clusters on this machine: %s.\n", playground.KubernetesVersion, strings.Join(names, ", "))
	missing := realNodes()
	if os.Getenv("OCM_DEMO_NODES") == "process" {
		missing = errors.New("OCM_DEMO_NODES=process is set")
	}
	if missing == nil {
		fmt.Fprint(d.out, "They have real nodes, with containerd and kubelet, each in its own network namespace.\n",
			"Nothing in them can reach a registry: pods can only use this project's images.\n")
		if err := d.startNodes(ctx, names); err != nil {
			return err
		}
		return d.writeKubeconfig(names)
	}
	fmt.Fprintf(d.out, "They have real control planes and a process node (no real nodes: %v).\n"+
		"It runs the pods of this project's images as processes of this machine; pods of other\n"+
		"images stay Pending, with the reason in their status.\n", missing)
	if err := d.startProcesses(ctx, names); err != nil {
		return err
	}
	return d.writeKubeconfig(names)
}

// startProcesses starts clusters with process nodes, all at the same time.
func (d *demo) startProcesses(ctx context.Context, names []string) error {
	programs := map[string]string{}
	for name := range images {
		programs[name] = d.program(name)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			_, err := playground.Start(ctx, playground.Config{
				Dir: filepath.Join(d.dir, name), Name: name, Binaries: d.binaries,
				Keeper: []string{d.self, keep}, KeeperEnv: os.Environ(), Images: programs,
			})
			return err
		})
	}
	return group.Wait()
}

func (d *demo) program(name string) string { return filepath.Join(d.tools, name) }

func (d *demo) writeKubeconfig(names []string) error {
	merged := clientcmdapi.NewConfig()
	for _, name := range names {
		one, err := clientcmd.LoadFromFile(filepath.Join(d.dir, name, adminFile))
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
		}
		current := one.Contexts[one.CurrentContext]
		merged.Clusters[name] = one.Clusters[current.Cluster]
		merged.AuthInfos[name] = one.AuthInfos[current.AuthInfo]
		merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	merged.CurrentContext = hub
	if err := clientcmd.WriteToFile(*merged, d.kubeconfig()); err != nil {
		return fmt.Errorf("writing the demo's kubeconfig: %w", err)
	}
	return nil
}
