// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func TestAProgramIsKeptForTheNextTestProcess(t *testing.T) {
	const name = "test/integration/playground/podapp"
	program := harness.Program(t, name)
	_, err := exec.LookPath(program)
	require.NoError(t, err, "it cannot be run")
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(cache, "kubectl-ocm", "programs", name, "podapp"))
	require.Equal(t, program, harness.Program(t, name))
}
