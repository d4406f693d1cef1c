// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// programs makes a folder with programs that print a version.
func programs(t *testing.T, version string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho Kubernetes "+version+"\n"), 0o700))
	}
	return dir
}

var kubernetes = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

func TestTheFirstSourceWithEverythingWins(t *testing.T) {
	whole := func() string { return programs(t, playground.KubernetesVersion, kubernetes...) }
	old, half := programs(t, "v1.2.3", kubernetes...), programs(t, playground.KubernetesVersion, "etcd", "kube-apiserver")
	given, assets, path, cache := whole(), whole(), whole(), whole()
	for _, tc := range []struct {
		sources Sources
		want    string
	}{
		{Sources{given, assets, []string{path}, cache}, given},
		{Sources{"", assets, []string{path}, cache}, assets},
		{Sources{"", half, []string{old, path}, cache}, path},
		{Sources{"", "", []string{"", half, old}, cache}, cache},
		{Sources{old, assets, []string{path}, cache}, ""},
		{Sources{"", "", nil, half}, ""},
	} {
		found, err := Kubernetes(t.Context(), tc.sources)
		if tc.want == "" {
			require.ErrorIs(t, err, playground.ErrNoBinaries)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, filepath.Join(tc.want, "etcd"), found.Etcd)
	}
}

func TestProgramsOfThisProjectAreThoseOfTheFirstFolder(t *testing.T) {
	first, second := programs(t, "", "ocm-hub"), programs(t, "", "ocm-hub", "ocm-agent", "webdemo")
	found, err := Programs("", first, second)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"ocm-hub": filepath.Join(first, "ocm-hub"), "ocm-agent": filepath.Join(second, "ocm-agent"), "webdemo": filepath.Join(second, "webdemo"),
	}, found)
	var absent *Absent
	_, err = Programs(first)
	require.ErrorAs(t, err, &absent)
	require.Equal(t, "ocm-agent", absent.Program)
}
