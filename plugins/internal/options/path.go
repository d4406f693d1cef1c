// SPDX-License-Identifier: Apache-2.0

package options

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Path returns the folders in which programs are looked for.
func Path(u *ui.UI) []string { return filepath.SplitList(u.Streams.Getenv("PATH")) }

// OnPath returns the first program of that name on PATH; "" when there is none.
func OnPath(u *ui.UI, name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range Path(u) {
		if file := filepath.Join(dir, name); IsExecutable(file) {
			return file
		}
	}
	return ""
}

// IsExecutable reports whether a shell would run the file, or the target of a link. On
// Windows, where modes do not tell, every file counts.
func IsExecutable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode()&fs.ModeDir == 0 && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0)
}
