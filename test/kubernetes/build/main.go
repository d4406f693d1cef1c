// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// program is one thing to build.
type program struct {
	name string
	// path is the main package, module the Go module it comes from, and dir the
	// folder whose go.mod pins that module.
	path, module, dir string
	node              bool
}

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
	helmModule       = "helm.sh/helm/v4"
)

// programs are listed in build order: those that take longest first, those of nodes last.
var programs = []program{
	{"kube-apiserver", kubernetesModule + "/cmd/kube-apiserver", kubernetesModule, ".", false},
	{"kube-controller-manager", kubernetesModule + "/cmd/kube-controller-manager", kubernetesModule, ".", false},
	{"kubectl", kubernetesModule + "/cmd/kubectl", kubernetesModule, ".", false},
	{"etcd", ".", etcdModule, "etcd", false},
	{"kube-scheduler", kubernetesModule + "/cmd/kube-scheduler", kubernetesModule, ".", true},
	{"kubelet", kubernetesModule + "/cmd/kubelet", kubernetesModule, ".", true},
	{"kube-proxy", kubernetesModule + "/cmd/kube-proxy", kubernetesModule, ".", true},
	{"helm", helmModule + "/cmd/helm", helmModule, "helm", true},
}

// job is what to build, for one architecture.
type job struct {
	arch   string
	wanted []program
	// versions are those that the go.mod files pin, by module.
	versions map[string]string
	// dir is the folder with the programs.
	dir string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	arch := flag.String("arch", runtime.GOARCH, "the architecture of the programs, as Go names it")
	controlPlane := flag.Bool("control-plane", false, "build only what a cluster without nodes needs")
	release := flag.String("release", "", "compress what was built of a control plane into this folder, if it is what the checksums name")
	flag.Parse()
	j, err := newJob(*arch, *controlPlane)
	if err == nil {
		err = j.run(ctx, os.Stdout)
	}
	if err == nil && *release != "" {
		err = j.publish(ctx, os.Stdout, *release)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

func newJob(arch string, controlPlane bool) (job, error) {
	j := job{arch: arch, versions: map[string]string{}}
	var err error
	for _, p := range programs {
		if controlPlane && p.node {
			continue
		}
		j.wanted = append(j.wanted, p)
		if j.versions[p.module] == "" {
			if j.versions[p.module], err = pinned(filepath.Join(p.dir, "go.mod"), p.module); err != nil {
				return j, err
			}
		}
	}
	j.dir, err = j.cacheDir()
	return j, err
}

// platform is that of the programs.
func (j job) platform() string { return runtime.GOOS + "-" + j.arch }

// run builds what is not there.
func (j job) run(ctx context.Context, out io.Writer) error {
	version := j.versions[kubernetesModule]
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" && j.arch == runtime.GOARCH && given(ctx, dir, version, j.wanted) {
		fmt.Fprintf(out, "Kubernetes %s: using KUBEBUILDER_ASSETS %s\n", version, dir)
		return nil
	}
	if len(missing(j.dir, j.wanted, j.versions)) == 0 {
		fmt.Fprintf(out, "Kubernetes %s: ready in %s\n", version, j.dir)
		return nil
	}
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(out, j.dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	// Another builder may have built it in the meantime.
	left := missing(j.dir, j.wanted, j.versions)
	if len(left) == 0 {
		fmt.Fprintf(out, "Kubernetes %s: ready in %s\n", version, j.dir)
		return nil
	}
	fmt.Fprintf(out, "Kubernetes %s: building %d programs for %s into %s (some minutes, once)\n", version, len(left), j.platform(), j.dir)
	for i, p := range left {
		fmt.Fprintf(out, "[%d/%d] %-24s", i+1, len(left), p.name)
		began := time.Now()
		if err := j.build(ctx, p); err != nil {
			fmt.Fprintln(out, " failed")
			return err
		}
		fmt.Fprintf(out, " %s\n", time.Since(began).Round(time.Second))
	}
	return nil
}

// pinned reads the version of a module from the require line of a go.mod file.
func pinned(file, module string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading %s (run it as: go -C test/kubernetes run ./build): %w", file, err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("reading %s: it does not require %s", file, module)
}

func (j job) cacheDir() (string, error) {
	if dir := os.Getenv("OCM_KUBERNETES_CACHE"); dir != "" && j.arch == runtime.GOARCH {
		return filepath.Abs(dir)
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "kubectl-ocm", "kubernetes", j.versions[kubernetesModule]+"-"+j.platform()), nil
}

// build builds one program next to its final path and moves it there.
func (j job) build(ctx context.Context, p program) error {
	beside := filepath.Join(j.dir+".tmp", p.name)
	if err := os.RemoveAll(j.dir + ".tmp"); err != nil {
		return err
	}
	defer os.RemoveAll(j.dir + ".tmp")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp(j.versions[kubernetesModule]), "-o", beside, p.path)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS="+runtime.GOOS, "GOARCH="+j.arch,
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off") // whoever builds them gets the same programs
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.name, errors.Join(ctx.Err(), err), text)
	}
	return os.Rename(beside, filepath.Join(j.dir, p.name))
}

// stamp makes the programs report their version instead of v0.0.0-master.
func stamp(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	flags := "-s -w"
	for _, target := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", target, version, parts[0], parts[1])
	}
	return flags
}
