// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// KubernetesVersion is the version that playgrounds run; test/kubernetes builds it.
const KubernetesVersion = "v1.36.3"

// Binaries are the absolute paths of the programs a cluster consists of.
type Binaries struct {
	// Etcd, APIServer and ControllerManager make the control plane.
	Etcd, APIServer, ControllerManager string
	// Kubectl is not run by a playground, and need not be there; the demo and tests use it.
	Kubectl string
}

// ErrNoBinaries is returned by FindBinaries when no folder holds a matching set.
var ErrNoBinaries = errors.New("no Kubernetes " + KubernetesVersion + " for this machine; build it with: make kubernetes")

// CacheDir returns the folder where test/kubernetes keeps what it builds: one folder for
// each version and platform below root, which is usually os.UserCacheDir.
func CacheDir(root string) string {
	name := KubernetesVersion + "-" + runtime.GOOS + "-" + runtime.GOARCH
	return filepath.Join(root, "kubectl-ocm", "kubernetes", name)
}

// FindBinaries looks for etcd, kube-apiserver and kube-controller-manager in the given
// folders, empty names left out. It returns the first folder that holds all three, with a
// kube-apiserver of KubernetesVersion.
func FindBinaries(ctx context.Context, folders ...string) (Binaries, error) {
	for _, dir := range folders {
		if dir == "" {
			continue
		}
		found := Binaries{
			Etcd:              filepath.Join(dir, "etcd"),
			APIServer:         filepath.Join(dir, "kube-apiserver"),
			ControllerManager: filepath.Join(dir, "kube-controller-manager"),
			Kubectl:           filepath.Join(dir, "kubectl"),
		}
		if found.complete() && fits(ctx, found.APIServer) {
			return found, nil
		}
	}
	return Binaries{}, fmt.Errorf("looking for Kubernetes in %s: %w", strings.Join(folders, " "), ErrNoBinaries)
}

func (b Binaries) complete() bool {
	for _, path := range []string{b.Etcd, b.APIServer, b.ControllerManager} {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o100 == 0 {
			return false
		}
	}
	return true
}

func fits(ctx context.Context, apiserver string) bool {
	out, err := exec.CommandContext(ctx, apiserver, "--version").Output()
	return err == nil && strings.TrimSpace(string(out)) == "Kubernetes "+KubernetesVersion
}
