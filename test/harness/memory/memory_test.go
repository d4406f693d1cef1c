// SPDX-License-Identifier: Apache-2.0

//go:build linux

package memory

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryThatIsTouchedIsCounted(t *testing.T) {
	const size = 64 << 20
	before, err := Of(os.Getpid())
	require.NoError(t, err)
	held := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		held[i] = 1
	}
	after, err := Of(os.Getpid())
	require.NoError(t, err)
	runtime.KeepAlive(held)
	added := after.Since(before)
	require.Greater(t, added.Anon, int64(size*9/10))
	require.Greater(t, added.Resident, int64(size*9/10))
	require.GreaterOrEqual(t, after.Peak, after.Resident)
	require.Equal(t, after, before.Max(after))
}

func TestAProcessThatIsNotThereHasNoMemory(t *testing.T) {
	_, err := Of(math.MaxInt32)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTheWorkingSetLeavesOutWhatTheKernelTakesBackFirst(t *testing.T) {
	group := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(group, name), []byte(text), 0o600))
	}
	write("memory.current", "1000\n")
	write("memory.stat", "anon 100\ninactive_file 300\nactive_file 600\n")
	got, err := workingSet(group, "memory.current", "inactive_file")
	require.NoError(t, err)
	require.Equal(t, int64(700), got)
	_, err = workingSet(group, "memory.current", "total_inactive_file")
	require.ErrorContains(t, err, "has no total_inactive_file")
}
