// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/supply"
)

// findKubernetes returns the programs of Kubernetes: those of a folder that the user named, or of
// the cache, into which they are downloaded or else built.
func findKubernetes(ctx context.Context, cache string) (playground.Binaries, error) {
	if own := os.Getenv("OCM_KUBERNETES_CACHE"); own != "" {
		cache = own
	}
	find := func() (playground.Binaries, error) {
		return playground.FindBinaries(ctx, os.Getenv("KUBEBUILDER_ASSETS"), cache)
	}
	if found, err := find(); err == nil {
		return found, nil
	}
	fmt.Printf("There is no Kubernetes %s on this machine yet. Downloading it, once.\n", playground.KubernetesVersion)
	if err := download(ctx, cache); err != nil {
		if ctx.Err() != nil {
			return playground.Binaries{}, ctx.Err()
		}
		fmt.Printf("It cannot be downloaded: %v\nBuilding it from its Go modules instead, which takes some minutes.\n", err)
		build := exec.CommandContext(ctx, "go", "run", "-C", "test/kubernetes", "./build", "-control-plane")
		build.Stdout, build.Stderr = os.Stdout, os.Stderr
		build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
		if err := build.Run(); err != nil {
			return playground.Binaries{}, fmt.Errorf("building Kubernetes: %w", err)
		}
	}
	return find()
}

// download fetches what the demo runs of Kubernetes, and prints how far it is.
func download(ctx context.Context, cache string) error {
	fifth := int64(0)
	return supply.Download{From: supply.Release, Into: cache, Progress: func(done, total int64) {
		if done*5/total > fifth {
			fifth = done * 5 / total
			fmt.Printf("%d of %d MB\n", done/1_000_000, total/1_000_000)
		}
	}}.Fetch(ctx, "etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
}
