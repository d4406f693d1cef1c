// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheOlderSpellingOfProxyKubectl has a kubectl that prints its words, and where an account leads it. Words after -- are never translated.
func TestTheOlderSpellingOfProxyKubectl(t *testing.T) {
	s := newScene(t)
	dir := t.TempDir()
	script := `#!/bin/sh
echo "$@"
while read -r line; do
  case "$line" in *server:*managedserviceaccounts*) echo "/namespaces${line#*/namespaces}";; esac
done < "$KUBECONFIG"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700)) //nolint:gosec // it is run
	s.env["PATH"], s.env["XDG_RUNTIME_DIR"] = dir, dir
	for _, words := range [][]string{
		{"--cluster", "cluster1", "--sa", "reader", "--args", "get nodes -o wide"},
		{"--args=get nodes -o wide", "--sa=reader", "--cluster=cluster1"},
	} {
		got := s.run(append([]string{"proxy", "kubectl", "--context", "hub"}, words...)...)
		require.Zero(t, got.code, got.err)
		require.Equal(t, "get nodes -o wide\n/namespaces/cluster1/managedserviceaccounts/reader/proxy\n", got.out)
		require.Regexp(t, `note: "proxy kubectl .*" is now "kubectl ocm proxy kubectl .*--as-sa.*"\n`, got.err)
	}
	got := s.run("proxy", "kubectl", "--context", "hub", "-c", "cluster1", "--", "run", "a", "--args", "b c", "--sa", "d")
	require.Equal(t, "run a --args b c --sa d\n", got.out)
	require.Empty(t, got.err)
}
