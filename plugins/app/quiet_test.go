// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// TestQuietIsQuiet runs every command that changes something with -q: one that succeeds
// prints nothing to stderr.
func TestQuietIsQuiet(t *testing.T) {
	more := map[string][]string{
		"get clusters":           {"--context", "hub"},
		"work apply --overwrite": lines["work apply"],
		"cluster list -w=false":  {"--context", "hub", "-l", "no=such"},
	}
	for path, flags := range lines {
		more[path] = flags
	}
	quiet := 0
	for path, flags := range more {
		if words(path)[0] == "completion" {
			continue
		}
		root := app.Root(&ui.UI{Streams: ui.Process(), Program: "kubectl ocm"})
		line := append(append(words(path), flags...), "-q", "--request-timeout", "5s")
		if cmd, _, err := root.Find(words(path)); err == nil {
			if cmd.Flags().Lookup("wait") != nil {
				line = append(line, "--wait=false")
			}
			if cmd.Flags().Lookup("timeout") != nil {
				line = append(line, "--timeout=2s") // some wait for what never happens here
			}
		}
		got := newScene(t).runIn(manifest, line...)
		if got.code == ui.ExitDone {
			quiet++
			require.Empty(t, got.err, path)
		}
	}
	require.Greater(t, quiet, 15, "most of them work")
}
