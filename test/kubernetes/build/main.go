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
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	controlPlane := flag.Bool("control-plane", false, "build only what a cluster without nodes needs")
	release := flag.String("release", "", "compress what was built of a control plane into this folder, if it is what the checksums name")
	flag.Parse()
	err := run(ctx, os.Stdout, *controlPlane)
	if err == nil && *release != "" {
		err = publish(ctx, os.Stdout, *release)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

func run(ctx context.Context, out io.Writer, controlPlane bool) error {
	wanted, versions, err := plan(controlPlane)
	if err != nil {
		return err
	}
	version := versions[kubernetesModule]
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" && given(ctx, dir, version, wanted) {
		fmt.Fprintf(out, "Kubernetes %s: using KUBEBUILDER_ASSETS %s\n", version, dir)
		return nil
	}
	dir, err := cacheDir(version)
	if err != nil {
		return err
	}
	if len(missing(dir, wanted, versions)) == 0 {
		fmt.Fprintf(out, "Kubernetes %s: ready in %s\n", version, dir)
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(out, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	// Another builder may have built it in the meantime.
	left := missing(dir, wanted, versions)
	if len(left) == 0 {
		fmt.Fprintf(out, "Kubernetes %s: ready in %s\n", version, dir)
		return nil
	}
	fmt.Fprintf(out, "Kubernetes %s: building %d programs for %s/%s into %s (some minutes, once)\n",
		version, len(left), runtime.GOOS, runtime.GOARCH, dir)
	for i, p := range left {
		fmt.Fprintf(out, "[%d/%d] %-24s", i+1, len(left), p.name)
		began := time.Now()
		if err := build(ctx, p, version, dir); err != nil {
			fmt.Fprintln(out, " failed")
			return err
		}
		fmt.Fprintf(out, " %s\n", time.Since(began).Round(time.Second))
	}
	return nil
}

// plan is what to build, and the versions that the two go.mod files pin.
func plan(controlPlane bool) (wanted []program, versions map[string]string, err error) {
	versions = map[string]string{}
	for _, p := range programs {
		if controlPlane && p.node {
			continue
		}
		wanted = append(wanted, p)
		if versions[p.module] == "" {
			if versions[p.module], err = pinned(filepath.Join(p.dir, "go.mod"), p.module); err != nil {
				return nil, nil, err
			}
		}
	}
	return wanted, versions, nil
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

func cacheDir(version string) (string, error) {
	if dir := os.Getenv("OCM_KUBERNETES_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "kubectl-ocm", "kubernetes", version+"-"+runtime.GOOS+"-"+runtime.GOARCH), nil
}

// build builds one program next to its final path and moves it there.
func build(ctx context.Context, p program, version, dir string) error {
	beside := filepath.Join(dir+".tmp", p.name)
	if err := os.RemoveAll(dir + ".tmp"); err != nil {
		return err
	}
	defer os.RemoveAll(dir + ".tmp")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp(version), "-o", beside, p.path)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off") // whoever builds them gets the same programs
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.name, errors.Join(ctx.Err(), err), text)
	}
	return os.Rename(beside, filepath.Join(dir, p.name))
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
