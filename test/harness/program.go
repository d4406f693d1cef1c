// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the import path below which the programs of this repository lie.
const module = "github.com/kubectl-ocm/kubectl-ocm/"

// programFolder is one folder for all programs of this test process; the reaper
// removes it.
var programFolder = sync.OnceValues(func() (string, error) {
	reaper, err := reaper()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return "", err
	}
	return dir, reaper.Watch(dir)
})

// programs holds one build for each package.
var programs sync.Map

// Program builds a main package of this repository, named by its path from the root
// ("controllers/ocm-agent"), once for this test process, and returns the path of the
// executable. It is built as for an image: statically linked, without cgo.
func Program(t testing.TB, name string) string {
	t.Helper()
	build, _ := programs.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		dir, err := programFolder()
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, path.Base(name))
		cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, module+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", name, err, text)
		}
		return out, nil
	}))
	program, err := build.(func() (string, error))()
	require.NoError(t, err)
	return program
}
