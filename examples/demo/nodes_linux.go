// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// hold is the hidden argument with which the demo runs itself as the holder of clusters
// with real nodes: they live as long as that process.
const hold = "hold"

// The holder's files in the demo's directory.
const (
	holderName = "holder"
	// readyFile appears when all clusters are up.
	readyFile = "ready"
	// stopSocket is where the holder listens; a connection stops it gracefully.
	stopSocket = "stop.sock"
)

// realNodes returns why this machine cannot run real nodes, or nil if it can.
func realNodes() error {
	if os.Geteuid() != 0 {
		return errors.New("they need root")
	}
	return nodes.Supported()
}

// startNodes builds the images and starts the holder of the clusters.
func (d *demo) startNodes(ctx context.Context, names []string) error {
	if err := os.MkdirAll(filepath.Join(d.dir, "t"), 0o700); err != nil {
		return err
	}
	version, err := os.ReadFile("VERSION")
	if err != nil {
		return fmt.Errorf("reading the version: %w", err)
	}
	config := oci.Config{
		Repository: oci.DefaultRepository, Version: strings.TrimSpace(string(version)),
		Out: filepath.Join(d.dir, "images"), Platforms: []string{"linux/" + runtime.GOARCH},
	}
	for name, pkg := range images {
		if _, err := oci.Build(ctx, config, oci.Image{Name: name, Package: pkg}); err != nil {
			return fmt.Errorf("building image %s: %w", name, err)
		}
	}
	work, err := os.Getwd()
	if err != nil {
		return err
	}
	holder, err := process.Start(process.Spec{
		Name: holderName, Dir: d.dir, Path: d.self, Args: append([]string{hold, d.dir}, names...), WorkDir: work,
		// Everything that nodes write is in the demo's directory and is deleted with it.
		Env: append(os.Environ(), "TMPDIR="+filepath.Join(d.dir, "t")),
	})
	if err != nil {
		return err
	}
	return await(ctx, holder, filepath.Join(d.dir, readyFile))
}

// await waits until a file exists or the process ends.
func await(ctx context.Context, p *process.Process, file string) error {
	for {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return p.Failure()
		case <-ctx.Done():
			return ctx.Err()
		case <-tick():
		}
	}
}

// stopNodes stops the holder gracefully, if there is one.
func stopNodes(ctx context.Context, dir string) {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, stopSocket))
	if err != nil {
		return // none runs; the leftovers of a crashed one are deleted with the directory
	}
	_, _ = io.Copy(io.Discard, connection) // it closes when everything is gone
	_ = connection.Close()
}

// holdNodes runs the holder: it starts the clusters, forwards loopback ports to them, and
// stops when told to.
func holdNodes(ctx context.Context, dir string, names []string) error {
	binaries, err := nodes.FindBinaries(ctx)
	if err != nil {
		return err
	}
	fabric, err := nodes.NewFabric(ctx, binaries)
	if err != nil {
		return err
	}
	err = serveNodes(ctx, fabric, dir, names)
	return errors.Join(err, fabric.Close())
}

func serveNodes(ctx context.Context, fabric *nodes.Fabric, dir string, names []string) error {
	archives, err := filepath.Glob(filepath.Join(dir, "images", "*.tar"))
	if err != nil {
		return err
	}
	group, starting := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			cluster, err := fabric.Start(starting, nodes.Options{Name: name, Images: archives})
			if err != nil {
				return err
			}
			return open(ctx, cluster, filepath.Join(dir, name))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", filepath.Join(dir, stopSocket))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	if err := os.WriteFile(filepath.Join(dir, readyFile), nil, 0o600); err != nil {
		return err
	}
	caller, err := listener.Accept()
	if err != nil {
		return nil // ctx has ended
	}
	go func() { <-ctx.Done(); _ = caller.Close() }()
	return nil
}

// open forwards a loopback port to the cluster's API server and writes a kubeconfig file
// for it.
func open(ctx context.Context, cluster *nodes.Cluster, dir string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	target := strings.TrimPrefix(cluster.Server, "https://")
	go func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(ctx, outer, cluster, target)
		}
	}()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: %w", cluster.Name, err)
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + listener.Addr().String()
	}
	return clientcmd.WriteToFile(*config, filepath.Join(dir, adminFile))
}

// forward connects an outside connection to one that is opened inside.
func forward(ctx context.Context, outer net.Conn, cluster *nodes.Cluster, target string) {
	defer func() { _ = outer.Close() }()
	inner, err := cluster.Config.Dial(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = inner.Close() }()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{outer, inner}, {inner, outer}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}
