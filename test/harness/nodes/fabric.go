// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// PauseImage is on every node: its container does nothing until it is ended.
const PauseImage = "localhost/kubectl-ocm/pause:v0.0.1"

const (
	// here is the import path of this package, below which its programs are.
	here = "github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
	// folderPrefix begins the names of a fabric's folder and control groups.
	folderPrefix = "ocm-nodes-"
	// maxClusters is bounded by the address ranges; see Cluster.podRange.
	maxClusters = 40
)

// pollEvery is the interval at which a starting program is checked.
const pollEvery = 20 * time.Millisecond

// Fabric is a network of clusters that see each other and nothing else.
type Fabric struct {
	binaries Binaries
	dir      string
	switched *cell

	mutex    sync.Mutex
	clusters []*Cluster
}

// Binaries are the absolute paths of the Kubernetes programs a cluster runs.
type Binaries struct {
	playground.Binaries
	Scheduler, Kubelet, Proxy string
}

// FindBinaries finds Kubernetes where package harness does, and fails when the programs
// of a node are missing there.
func FindBinaries(ctx context.Context) (Binaries, error) {
	base, err := harness.Binaries(ctx)
	if err != nil {
		return Binaries{}, err
	}
	return BesideBinaries(base)
}

// BesideBinaries finds the programs of a node in the folder of a control plane's
// programs.
func BesideBinaries(base playground.Binaries) (Binaries, error) {
	dir := filepath.Dir(base.APIServer)
	found := Binaries{
		Binaries: base, Scheduler: filepath.Join(dir, "kube-scheduler"),
		Kubelet: filepath.Join(dir, "kubelet"), Proxy: filepath.Join(dir, "kube-proxy"),
	}
	for _, path := range []string{found.Scheduler, found.Kubelet, found.Proxy} {
		if _, err := os.Stat(path); err != nil {
			return Binaries{}, fmt.Errorf("looking for the programs of a node: %w: %w", err, playground.ErrNoBinaries)
		}
	}
	return found, nil
}

// Supported returns an error that names a program that nodes need and that is missing;
// nil when none is.
func Supported() error {
	for _, program := range []string{"containerd", "ctr", "runc", "nft", "ip", "iptables", "conntrack"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("looking for what nodes need (containerd runc containernetworking-plugins nftables iproute2 iptables conntrack): %w", err)
		}
	}
	return nil
}

// NewFabric creates an empty network. Its folder is in the system's temporary folder,
// with a short name because of the limit for socket paths.
func NewFabric(ctx context.Context, binaries Binaries) (*Fabric, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return nil, err
	}
	f := &Fabric{binaries: binaries, dir: dir}
	if err := f.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("making the fabric: %w", err), f.Close())
	}
	return f, nil
}

// prepare builds the programs of the harness and creates the bridge.
func (f *Fabric) prepare(ctx context.Context) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", f.cellProgram(), here+"/cell")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the cell program: %w\n%s", err, output)
	}
	repository, version, _ := strings.Cut(PauseImage, "/pause:")
	config := oci.Config{Repository: repository, Version: version, Out: f.dir, Platforms: []string{platform()}}
	if _, err := oci.Build(ctx, config, oci.Image{Name: "pause", Package: here + "/pause"}); err != nil {
		return err
	}
	var err error
	f.switched, err = f.openCell(ctx, "switch", f.dir, "")
	if err != nil {
		return err
	}
	return f.switched.ip(ctx, "link set lo up", "link add fabric type bridge", "link set fabric up")
}

func (f *Fabric) cellProgram() string { return filepath.Join(f.dir, "cell") }

// Close ends every cluster and removes all traces of the fabric. It may be called more
// than once.
func (f *Fabric) Close() error {
	f.mutex.Lock()
	clusters := f.clusters
	f.clusters = nil
	f.mutex.Unlock()
	var failed []error
	for _, cluster := range clusters {
		failed = append(failed, cluster.Stop())
	}
	failed = append(failed, f.switched.close(), os.RemoveAll(f.dir))
	return errors.Join(failed...)
}
