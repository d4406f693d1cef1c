// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheOlderSpellingOfProxyKubectl has a kubectl that prints its words. Words after -- are never translated.
func TestTheOlderSpellingOfProxyKubectl(t *testing.T) {
	s := newScene(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700)) //nolint:gosec // it is run
	s.env["PATH"], s.env["XDG_RUNTIME_DIR"] = dir, dir
	for _, words := range [][]string{
		{"--cluster", "cluster1", "--sa", "reader", "--args", "get nodes -o wide"},
		{"--args=get nodes -o wide", "--sa=reader", "--cluster=cluster1"},
	} {
		got := s.run(append([]string{"proxy", "kubectl", "--context", "hub"}, words...)...)
		require.Zero(t, got.code, got.err)
		require.Equal(t, "get nodes -o wide\n", got.out)
		require.Contains(t, got.err, `is now "kubectl ocm proxy kubectl -- WORDS"; requests are sent as you, not as that account`)
	}
	got := s.run("proxy", "kubectl", "--context", "hub", "-c", "cluster1", "--", "run", "a", "--args", "b c", "--sa", "d")
	require.Equal(t, "run a --args b c --sa d\n", got.out)
	require.Empty(t, got.err)
}
