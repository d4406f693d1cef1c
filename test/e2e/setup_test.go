// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// Patience of the suite: how long it looks for something that must become so,
// and how often. Budgets of time are tested elsewhere.
const (
	patience = 90 * time.Second
	tick     = 50 * time.Millisecond
)

// root is the folder of the module, as seen from this package.
const root = "../.."

// programs are the images of the project and the main packages in them.
var programs = map[string]string{
	"webdemo": "./examples/webdemo",
}

// images are the archives of programs, by name; TestMain makes them.
var images = map[string]string{}

// version is that of the images.
var version string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "e2e-images-")
	if err == nil {
		err = buildImages(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintf(os.Stderr, "building images: %v\n", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func buildImages(dir string) error {
	content, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return err
	}
	version = strings.TrimSpace(string(content))
	config := oci.Config{
		Repository: oci.DefaultRepository, Version: version, Out: dir, Dir: root,
		Platforms: []string{"linux/" + runtime.GOARCH},
	}
	for name, pkg := range programs {
		archive, err := oci.Build(context.Background(), config, oci.Image{Name: name, Package: pkg})
		if err != nil {
			return err
		}
		images[name] = archive.Path
	}
	return nil
}

// kubectl runs kubectl on a cluster and returns its output; it must succeed.
func kubectl(t *testing.T, c *nodes.Cluster, arguments ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), arguments...)
	require.NoError(t, err)
	return strings.TrimSpace(out)
}

// eventually waits until check returns no error, and shows its last one when
// that does not come.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for last = check(); last != nil; last = check() {
		require.False(t, time.Now().After(deadline), "still not so after %s: %v", patience, last)
		<-ticker.C
	}
}
