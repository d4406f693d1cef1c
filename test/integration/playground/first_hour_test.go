// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// spendsAnHour types docs/guides/first-hour.md from a playground with two clusters on to its last line
// but one, which ends the playground. What the guide says that a command prints, it prints.
func (p *person) spendsAnHour() {
	p.t.Helper()
	guide, err := os.ReadFile("../../../docs/guides/first-hour.md")
	require.NoError(p.t, err)
	printed, typed := "", 0
	for _, block := range regexp.MustCompile("(?s)\n```([a-z]*)\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		switch block[1] {
		case "yaml":
			require.NoError(p.t, os.WriteFile(filepath.Join(p.home, "hello.yaml"), []byte(block[2]), 0o600))
		case "text":
			require.Contains(p.t, printed, block[2])
		default:
			for line := range strings.Lines(block[2]) {
				if line = strings.TrimSpace(line); line != "kubectl ocm dev down" {
					printed = p.enters(line)
					typed++
				}
			}
		}
	}
	require.Equal(p.t, 25, typed)
	require.FileExists(p.t, filepath.Join(p.home, "fleet.html"))
}

// enters runs a line of the plugin or of kubectl, and returns what it prints. A check may find what the
// guide has broken.
func (p *person) enters(line string) string {
	p.t.Helper()
	if strings.HasPrefix(line, "kubectl ocm ") {
		if !strings.HasPrefix(line, "kubectl ocm check spoke") || strings.Contains(line, "--wait") {
			return p.does(line)
		}
		var out string
		require.True(p.t, harness.Until(patience, func() bool { // the Deployment counts its pods a moment later
			var code int
			code, out, _ = p.types(line)
			return code == 3 && strings.Contains(out, " 0/1 ready")
		}), out)
		return out
	}
	binaries, err := harness.Binaries(p.t.Context())
	require.NoError(p.t, err)
	cmd := exec.CommandContext(p.t.Context(), binaries.Kubectl, strings.Fields(line)[1:]...)
	cmd.Dir, cmd.Env = p.home, []string{"HOME=" + p.home, "KUBECONFIG=" + p.kubeconfig()}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(p.t, cmd.Run(), "%s\n%s", line, &said)
	p.t.Logf("%s\n%s", line, said.String())
	return said.String()
}
