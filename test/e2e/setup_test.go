// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// Patience of the suite: how long and how often it polls. It is not a budget:
// measurements are logged.
const (
	patience = 3 * time.Minute
	tick     = 20 * time.Millisecond
)

// root is the folder of the module, relative to this package.
const root = "../.."

// programs maps the images of the project, and that of the tests, to the main packages in them.
var programs = map[string]string{
	"ocm-hub":                "./controllers/ocm-hub",
	"ocm-agent":              "./controllers/ocm-agent",
	"webdemo":                "./examples/webdemo",
	"helloworld-addon":       "./examples/helloworld-addon",
	"managed-serviceaccount": "./controllers/managed-serviceaccount",
	"tar":                    "./test/e2e/tar",
}

// built holds what tests have built: archives of images, and the plugin. Each is built
// once, from the current tree.
var built = struct {
	sync.Mutex
	dir   string
	paths map[string]string
}{paths: map[string]string{}}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ocm-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// version returns the version of images and plugin.
func version(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "VERSION"))
	require.NoError(t, err)
	return strings.TrimSpace(string(content))
}

// once returns what build returned for a name, and calls it the first time.
func once(t *testing.T, name string, build func(ctx context.Context, dir string) (string, error)) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.paths[name] == "" {
		path, err := build(t.Context(), built.dir)
		require.NoError(t, err)
		built.paths[name] = path
	}
	return built.paths[name]
}

// image builds the archive of an image of this release and returns its path.
func image(t *testing.T, name string) string {
	t.Helper()
	return imageOf(t, name, version(t))
}

// imageOf builds the archive of an image, from the current tree, as one of a release.
func imageOf(t *testing.T, name, release string) string {
	t.Helper()
	return once(t, name+":"+release, func(ctx context.Context, dir string) (string, error) {
		config := oci.Config{
			Repository: oci.DefaultRepository, Version: release, Out: filepath.Join(dir, release), Dir: root,
			Platforms: []string{"linux/" + runtime.GOARCH},
		}
		archive, err := oci.Build(ctx, config, oci.Image{Name: name, Package: programs[name]})
		return archive.Path, err
	})
}

// plugin builds the plugin's binary and returns its path.
func plugin(t *testing.T) string {
	t.Helper()
	return once(t, "plugin", func(ctx context.Context, dir string) (string, error) {
		path := filepath.Join(dir, "kubectl-ocm")
		stamp := "-s -w -X github.com/kubectl-ocm/kubectl-ocm/internal/version.stamped=" + version(t)
		command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", path, "./plugins/kubectl-ocm")
		command.Dir = root
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the plugin: %w\n%s", err, output)
		}
		return path, nil
	})
}

// kubectl runs kubectl on a cluster and returns its output; it must succeed.
func kubectl(t *testing.T, c *nodes.Cluster, arguments ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), arguments...)
	require.NoError(t, err)
	return strings.TrimSpace(out)
}

// eventually waits until check returns no error, and fails with its last error when it
// does not. It returns how long that took.
func eventually(t *testing.T, check func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for last := check(); last != nil; last = check() {
		require.Less(t, time.Since(begin), patience, "it does not become so: %v", last)
		<-ticker.C
	}
	return time.Since(begin)
}

// story runs the chapters one after the other and ends with the first that fails, because
// each depends on those before.
func story(t *testing.T, chapters ...chapter) {
	t.Helper()
	for _, one := range chapters {
		begin := time.Now()
		if !t.Run(one.name, one.run) {
			t.FailNow()
		}
		t.Logf("%5.1f s  %s", time.Since(begin).Seconds(), one.name)
	}
}

// chapter is one part of a story.
type chapter struct {
	name string
	run  func(*testing.T)
}

// errAbsent is returned by checks for what is not there yet.
var errAbsent = errors.New("not there yet")
