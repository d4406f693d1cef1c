// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

func TestAnArchiveHasTheFilesThatTheChartLinksTo(t *testing.T) {
	out := filepath.Join(t.TempDir(), "charts")
	require.NoError(t, pack(out, []string{"../../config/helm/cluster-manager", "../../config/helm/klusterlet"}))
	for name, manifest := range map[string]string{"cluster-manager": "manifests/clustermanager.yaml", "klusterlet": "manifests/klusterlet.yaml"} {
		folder, err := loader.LoadDir("../../config/helm/" + name)
		require.NoError(t, err)
		archive, err := loader.LoadFile(filepath.Join(out, name+"-"+folder.Metadata.Version+".tgz"))
		require.NoError(t, err)
		files := map[string]string{}
		for _, file := range archive.Files {
			files[file.Name] = string(file.Data)
		}
		for _, file := range folder.Files {
			require.Equal(t, string(file.Data), files[file.Name], file.Name)
		}
		require.Contains(t, files[manifest], "kind: ")
		require.Len(t, archive.CRDObjects(), 1)
		require.Equal(t, folder.CRDObjects()[0].File.Data, archive.CRDObjects()[0].File.Data)
	}
}
