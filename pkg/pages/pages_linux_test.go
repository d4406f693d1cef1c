// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"
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

// TestKeepGivesBackAgainAndAgain runs through two rounds of a clock.
func TestKeepGivesBackAgainAndAgain(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Time{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Keep(ctx, c, logr.Discard()) }()
	for range 2 {
		require.Eventually(t, c.HasWaiters, time.Minute, time.Millisecond)
		runThrough(t)
		before := fromFile(t)
		c.Step(Every)
		require.Eventually(t, func() bool { return fromFile(t) < before }, time.Minute, time.Millisecond)
	}
	cancel()
	require.NoError(t, <-done)
}

// runThrough brings pages of the program into this process, as a burst of work does.
func runThrough(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	for _, s := range clean(strings.NewReader(string(raw)), program) {
		_, _, problem := unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_POPULATE_READ)
		require.Zero(t, problem)
	}
}
