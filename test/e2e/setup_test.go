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

// Patience of the suite: how long it looks for something that must become so,
// and how often. It is no budget: what is measured is logged.
const (
	patience = 3 * time.Minute
	tick     = 20 * time.Millisecond
)

// root is the folder of the module, as seen from this package.
const root = "../.."

// programs are the images of the project and the main packages in them.
var programs = map[string]string{
	"ocm-hub":          "./controllers/ocm-hub",
	"ocm-agent":        "./controllers/ocm-agent",
	"webdemo":          "./examples/webdemo",
	"helloworld-addon": "./examples/helloworld-addon",
}

// built holds what tests asked for: archives of images, and the plugin. Each is
// built once, from the tree as it is.
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

// version is that of images and plugin.
func version(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "VERSION"))
	require.NoError(t, err)
	return strings.TrimSpace(string(content))
}

// once returns what make returned for a name, calling it if that was not done.
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

// image builds the archive of an image and returns its path.
func image(t *testing.T, name string) string {
	t.Helper()
	return once(t, name, func(ctx context.Context, dir string) (string, error) {
		config := oci.Config{
			Repository: oci.DefaultRepository, Version: version(t), Out: dir, Dir: root,
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

// eventually waits until check returns no error, and shows its last one when
// that does not come. It returns how long it took.
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

// story runs the chapters one after the other and ends with the first that
// fails, because each stands on those before.
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

// errAbsent is what checks return for what has not come yet.
var errAbsent = errors.New("not there yet")
