// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// TestTheLinkStaysOutOfKrewsFolder: krew takes every file in its folder for a plugin, and
// refuses to work if there are files without receipts. After its last plugin is
// uninstalled, that folder is empty.
func TestTheLinkStaysOutOfKrewsFolder(t *testing.T) {
	home := t.TempDir()
	krew, own := filepath.Join(home, ".krew"), filepath.Join(home, ".local", "bin")
	bin := filepath.Join(krew, "bin")
	program := filepath.Join(krew, "store", "ocm", "v1", pluginName)
	for _, dir := range []string{own, bin, filepath.Join(krew, "receipts"), filepath.Dir(program)} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	require.NoError(t, os.Symlink(program, filepath.Join(bin, pluginName)))
	t.Setenv("HOME", home)
	run := func(path []string, words ...string) (out, errs string) {
		t.Helper()
		t.Setenv("PATH", strings.Join(path, string(os.PathListSeparator)))
		var o, e bytes.Buffer
		u := &ui.UI{Program: "kubectl ocm", Streams: ui.Streams{Out: &o, Err: &e, Getenv: os.Getenv}}
		cmd := New(options.NewFactory(u))
		cmd.SetArgs(words)
		require.NoError(t, cmd.ExecuteContext(t.Context()))
		return o.String(), e.String()
	}
	link := func(dir string) string { return filepath.Join(dir, linkName) }

	// If there is no other folder, the command says what to do before uninstalling.
	out, errs := run([]string{bin}, "install")
	require.Equal(t, link(bin)+" created\n", out)
	require.Contains(t, errs, "run: kubectl ocm completion uninstall")

	// If there is one, the link goes there, and the one in krew's folder is removed.
	path := []string{"/nonexistent", bin, own}
	out, _ = run(path, "install", "--dry-run")
	require.Equal(t, link(own)+" created (dry run)\n"+link(bin)+" deleted (dry run)\n", out)
	require.NoFileExists(t, link(own))
	out, errs = run(path, "install")
	require.Equal(t, link(own)+" created\n"+link(bin)+" deleted\n", out)
	require.Empty(t, errs)
	out, _ = run(path, "install")
	require.Equal(t, link(own)+" unchanged\n", out)
	left, err := os.ReadDir(bin)
	require.NoError(t, err)
	require.Len(t, left, 1, "krew's folder holds the plugin alone")

	// It leads to the version that krew links, and is found again when that is gone.
	target, err := filepath.EvalSymlinks(link(own))
	require.NoError(t, err)
	require.Equal(t, program, target)
	require.NoError(t, os.Symlink(pluginName, link(bin)))
	out, _ = run(path, "uninstall")
	require.Equal(t, link(own)+" deleted\n"+link(bin)+" deleted\n", out)
	out, _ = run(path, "uninstall")
	require.Equal(t, link(own)+" unchanged\n", out)
}
