// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ours is the prefix of programs that kubectl runs in place of our commands.
const ours = "kubectl-ocm-"

// shadows finds programs on PATH that shadow commands of this plugin.
func (o *Options) shadows() check.Area {
	area := check.Area{Name: "this machine"}
	if slices.Contains(o.Skip, check.CodeShadowed) {
		return area
	}
	for _, dir := range filepath.SplitList(o.f.UI.Streams.Getenv("PATH")) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if word, found := strings.CutPrefix(e.Name(), ours); found && isExecutable(dir, e) {
				area.Findings = append(area.Findings, check.Finding{Code: check.CodeShadowed, Severity: check.SeverityWarning,
					Title: filepath.Join(dir, e.Name()) + " runs in place of \"kubectl ocm " + strings.ReplaceAll(word, "-", " ") + "\"",
					Fix:   fleet.Advice("rm " + ui.ShellWord(filepath.Join(dir, e.Name())) + "      unless it is wanted")})
			}
		}
	}
	return area
}

// isExecutable reports whether kubectl would run the file, or the target of a link. On
// Windows, where modes do not tell, every file counts.
func isExecutable(dir string, e os.DirEntry) bool {
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && !info.IsDir() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0)
}
