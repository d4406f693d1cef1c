// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// span is a part of the address space.
type span struct{ from, to uintptr }

// Release gives back the pages of the program's file that are not changed and
// cannot be, and returns how many bytes of address space that is about.
func Release() (int, error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("finding the program's file: %w", err)
	}
	table, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("reading the program's memory map: %w", err)
	}
	defer table.Close()
	released := 0
	for _, s := range clean(table, program) {
		size := s.to - s.from
		// The advice to reclaim them first is younger than some kernels, and does
		// no more than to help; the pages go without it too.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, size, unix.MADV_COLD)
		if _, _, problem := unix.Syscall(unix.SYS_MADVISE, s.from, size, unix.MADV_DONTNEED); problem != 0 {
			return released, fmt.Errorf("giving back pages of the program: %w", problem)
		}
		released += int(size)
	}
	return released, nil
}

// clean finds the parts of a memory map that show the program's file, that the
// process cannot write to, and of which it holds no changed copy: they can be
// read from the file again at any time.
func clean(table io.Reader, program string) []span {
	var out []span
	var s span
	candidate := false
	for lines := bufio.NewScanner(table); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
		case !strings.HasSuffix(words[0], ":"):
			_, err := fmt.Sscanf(words[0], "%x-%x", &s.from, &s.to)
			candidate = err == nil && len(words) == 6 && words[5] == program && !strings.Contains(words[1], "w") && s.to > s.from
		case words[0] == "Anonymous:" && candidate && len(words) == 3 && words[1] == "0":
			out = append(out, s)
		}
	}
	return out
}
