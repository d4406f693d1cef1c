// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const table = `00400000-00d74000 r-xp 00000000 fe:00 10985954                           /bin/agent
Rss:                6352 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
00d74000-01797000 r--p 00974000 fe:00 10985954                           /bin/agent
Anonymous:             0 kB
01797000-0181f000 rw-p 01397000 fe:00 10985954                           /bin/agent
Anonymous:             0 kB
02000000-02001000 r--p 01397000 fe:00 10985954                           /bin/agent
Anonymous:             4 kB
2a2785800000-2a2786000000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 7                          /lib/libc.so
Anonymous:             0 kB
garbled r--p 0 0 0 /bin/agent
Anonymous:             0 kB
`

func TestOnlyWhatTheFileStillHoldsIsGivenBack(t *testing.T) {
	require.Equal(t, []span{{0x400000, 0xd74000}, {0xd74000, 0x1797000}}, clean(strings.NewReader(table), "/bin/agent"))
	require.Empty(t, clean(strings.NewReader(table), "/bin/other"))
}

// TestAProcessRunsOnWithFewerPages releases the pages of this very test.
func TestAProcessRunsOnWithFewerPages(t *testing.T) {
	before := fromFile(t)
	released, err := Release()
	require.NoError(t, err)
	require.Positive(t, released)
	require.Less(t, fromFile(t), before)
}

// fromFile is how much of this process are pages of files, in KiB.
func fromFile(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(raw), "RssFile:")
	require.True(t, found)
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib
}
