// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

// TestTheBillOfMaterialsNamesWhatIsLinked makes the bill of this program itself, which its
// tests use more modules than.
func TestTheBillOfMaterialsNamesWhatIsLinked(t *testing.T) {
	program := filepath.Join(t.TempDir(), "release")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(program)
	require.NoError(t, err)
	files := []packed{{Name: "LICENSE", Data: []byte("text")}, {Name: pluginName, Executable: true, Data: data}}
	text, err := bill("v1.2.3", platform{"linux", "amd64"}, files)
	require.NoError(t, err)
	again, err := bill("v1.2.3", platform{"linux", "amd64"}, files)
	require.NoError(t, err)
	require.Equal(t, text, again)

	var got cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&got))
	require.Equal(t, "kubectl-ocm_linux_amd64.tar.gz", got.Metadata.Component.Name)
	require.Equal(t, "v1.2.3", got.Metadata.Component.Version)
	names := map[string]string{}
	for _, c := range *got.Components {
		names[c.Name] = c.PackageURL
		require.NotEmpty(t, c.Version, c.Name)
	}
	require.Regexp(t, `^pkg:golang/sigs\.k8s\.io/yaml@v1\.`, names["sigs.k8s.io/yaml"])
	require.NotContains(t, names, "github.com/stretchr/testify", "only the tests link it")
}

func TestAProgramWithoutModulesHasNoBill(t *testing.T) {
	_, err := bill("v1.2.3", platform{"linux", "amd64"}, []packed{{Name: "ocm-hub", Executable: true, Data: []byte("#!/bin/sh\n")}})
	require.ErrorContains(t, err, "reading the modules of ocm-hub")
}
