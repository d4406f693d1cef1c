// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/playground"
)

// The clusters of the demo; the names are also those of their contexts.
const hub = "hub"

var managed = []string{"cluster1", "cluster2"}

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
	binaries, err := playground.FindBinaries(ctx, os.Getenv("KUBEBUILDER_ASSETS"), os.Getenv("OCM_KUBERNETES_CACHE"), kubernetes)
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

// up starts the clusters and plays the commands.
func (d *demo) up(ctx context.Context) error {
	if err := playground.Remove(d.dir); err != nil {
		return fmt.Errorf("removing an earlier demo: %w", err)
	}
	fmt.Fprint(d.out, "Starting three Kubernetes ", playground.KubernetesVersion, " clusters on this machine: ", hub, ", ", managed[0], ", ", managed[1], ".\n",
		"They have real control planes and a process node: it runs the pods of this project's\n",
		"images as processes of this machine. Pods of other images stay Pending and say so.\n")
	if err := d.startClusters(ctx); err != nil {
		return errors.Join(err, playground.Remove(d.dir))
	}
	if err := d.play(ctx); err != nil {
		return fmt.Errorf("%w\nThe clusters still run, to be looked at: export KUBECONFIG=%s\nStop them with: make demo-down", err, d.kubeconfig())
	}
	return nil
}

func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "kubeconfig") }

// startClusters starts all clusters at once and writes one kubeconfig file with
// a context for each.
func (d *demo) startClusters(ctx context.Context) error {
	names := append([]string{hub}, managed...)
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			_, err := playground.Start(ctx, playground.Config{
				Dir: filepath.Join(d.dir, name), Name: name, Binaries: d.binaries,
				Keeper: []string{d.self, keep}, KeeperEnv: os.Environ(),
				Images: map[string]string{
					"ocm-hub": d.program("ocm-hub"), "ocm-agent": d.program("ocm-agent"), "webdemo": d.program("webdemo"),
				},
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return d.writeKubeconfig(names)
}

func (d *demo) program(name string) string { return filepath.Join(d.tools, name) }

func (d *demo) writeKubeconfig(names []string) error {
	merged := clientcmdapi.NewConfig()
	for _, name := range names {
		one, err := clientcmd.LoadFromFile(filepath.Join(d.dir, name, "admin.kubeconfig"))
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
