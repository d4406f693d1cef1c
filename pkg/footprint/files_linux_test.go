// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const pages = 64

// mapped maps a file of some pages and returns it, its path, and how many of its KiB
// are resident.
func mapped(t *testing.T, protection int) (data []byte, file string, resident func() string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "mapped")
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte{7}, pages*os.Getpagesize()), 0o600))
	f, err := os.Open(file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	data, err = unix.Mmap(int(f.Fd()), 0, pages*os.Getpagesize(), protection, unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(data)) })
	return data, file, func() string {
		raw, err := os.ReadFile("/proc/self/smaps")
		require.NoError(t, err)
		_, after, found := strings.Cut(string(raw), file)
		require.True(t, found)
		_, after, _ = strings.Cut(after, "Rss:")
		rss, _, _ := strings.Cut(after, "kB")
		return strings.TrimSpace(rss)
	}
}

// sum reads all pages.
func sum(data []byte) (n int) {
	for _, b := range data {
		n += int(b)
	}
	return n
}

func TestTheProgramIsGivenBack(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	touched := func() int {
		raw, err := os.ReadFile("/proc/self/smaps")
		require.NoError(t, err)
		at := strings.Index(string(raw), program)
		require.Positive(t, at)
		_, after, _ := strings.Cut(string(raw)[at:], "Rss:")
		kib, err := strconv.Atoi(strings.Fields(after)[0])
		require.NoError(t, err)
		return kib
	}
	before := touched()
	Release()
	require.Less(t, touched(), before)
}

func TestPagesThatAreOnlyReadAreGivenBack(t *testing.T) {
	data, file, resident := mapped(t, unix.PROT_READ)
	want := sum(data)
	require.NotEqual(t, "0", resident())
	release(file)
	require.Equal(t, "0", resident())
	require.Equal(t, want, sum(data), "what is needed after all is there again")
}

func TestPagesThatDifferFromTheirFileStay(t *testing.T) {
	data, file, _ := mapped(t, unix.PROT_READ|unix.PROT_WRITE)
	data[len(data)-1] = 9
	release(file)
	require.Equal(t, byte(9), data[len(data)-1], "writable")
	require.NoError(t, unix.Mprotect(data, unix.PROT_READ))
	release(file)
	require.Equal(t, byte(9), data[len(data)-1], "written before it became read-only")
}

func TestWhichMappingsAreUnchanged(t *testing.T) {
	const text = `00400000-016bd000 r-xp 00000000 fe:00 9994690                            /bin/ocm-hub
Rss:               16244 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
016bd000-02a06000 r--p 012bd000 fe:00 9994690                            /bin/ocm-hub with a blank
Anonymous:             4 kB
02a06000-02ab0000 rw-p 02606000 fe:00 9994690                            /bin/ocm-hub
Anonymous:             0 kB
1fe019000000-1fe01cc00000 r--p 00000000 00:00 0
Anonymous:             0 kB
7fff0000-7fff1000 r-xp 00000000 00:00 0                                  [vdso]
Anonymous:             0 kB
zz-1 r-xp 00000000 fe:00 1                                               /bin/ocm-hub
Anonymous:             0 kB
`
	require.Equal(t, []span{{0x400000, 0x16bd000}}, unchanged(strings.NewReader(text), "/bin/ocm-hub"))
}
