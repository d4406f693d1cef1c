// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
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

// buildTimeout bounds how long other test processes may build the same program.
const buildTimeout = 10 * time.Minute

// Program builds a main package of this repository, named by its path from the root
// ("controllers/ocm-agent"), once for this test process, and returns the path of the
// executable, which stays as it is until the process ends. It is built as for an image:
// statically linked, without cgo. It is kept in the user's cache, so that the next test
// process does not link it again.
func Program(t testing.TB, name string) string {
	t.Helper()
	build, _ := programs.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		dir, err := programFolder()
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, path.Base(name))
		if err := provide(name, out); err != nil {
			return "", fmt.Errorf("building %s: %w", name, err)
		}
		return out, nil
	}))
	program, err := build.(func() (string, error))()
	require.NoError(t, err)
	return program
}

// provide brings the program in the cache up to date, which go build leaves alone when it
// is, and makes it available as the file out.
func provide(name, out string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "kubectl-ocm", "programs", filepath.FromSlash(name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var unlock func()
	Until(buildTimeout, func() bool {
		unlock, err = process.Lock(dir)
		return !errors.Is(err, process.ErrBusy)
	})
	if err != nil {
		return err
	}
	defer unlock()
	kept := filepath.Join(dir, path.Base(name))
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", kept, module+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	if os.Link(kept, out) == nil { // a later build replaces the file in the cache and does not write to it
		return nil
	}
	data, err := os.ReadFile(kept) // on another file system
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o700)
}
