// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

func TestOneProcessAtATimeWorksOnALab(t *testing.T) {
	root := t.TempDir()
	_, unlock, err := open(root, "lab", true)
	require.NoError(t, err)
	_, err = Down(root, "lab", false)
	require.ErrorIs(t, err, process.ErrBusy)
	unlock()
	_, err = Down(root, "lab", false)
	require.NoError(t, err)
	_, err = Down(root, "lab", false)
	require.ErrorIs(t, err, ErrNone)
}

// A crash may come before the record is written, or between two files of a removal.
func TestDownRemovesWhateverACrashHasLeft(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "lab", "hub")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	sleeper, err := process.Start(process.Spec{Name: "etcd", Dir: dir, Path: "/bin/sleep", Args: []string{"1000"}})
	require.NoError(t, err)
	_, err = Down(root, "lab", false)
	require.NoError(t, err)
	<-sleeper.Done()
	names, err := Names(root)
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestARecordThatIsDamagedIsNotGuessed(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "lab"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "lab", recordFile), []byte("{"), 0o600))
	_, err := Down(root, "lab", false)
	require.ErrorContains(t, err, recordFile)
}
