// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// span is a part of the address space.
type span struct{ from, to uint64 }

// releaseProgram unmaps the pages of the program.
func releaseProgram() {
	if program, err := os.Executable(); err == nil {
		release(program)
	}
}

// release unmaps the pages of a file that is mapped for as long as the process
// lives: the place of another could be that of something else by now.
func release(path string) {
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	spans := unchanged(file, path)
	_ = file.Close()
	for _, s := range spans {
		// The system may refuse, as for locked memory: then the pages stay.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(s.from), uintptr(s.to-s.from), unix.MADV_DONTNEED)
	}
}

// unchanged are the mappings of a file that cannot be written and of which no page
// differs from the file: one that does would be lost. smaps is what Linux calls so.
func unchanged(smaps io.Reader, path string) []span {
	var out []span
	var at span
	candidate := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case !strings.HasSuffix(fields[0], ":"):
			var ok bool
			at, ok = parseSpan(fields[0])
			candidate = ok && len(fields) >= 6 && !strings.Contains(fields[1], "w") && strings.Join(fields[5:], " ") == path
		case fields[0] == "Anonymous:" && candidate && fields[1] == "0":
			out = append(out, at)
		}
	}
	return out
}

// parseSpan reads "00400000-016bd000".
func parseSpan(text string) (s span, ok bool) {
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return s, false
	}
	var err1, err2 error
	s.from, err1 = strconv.ParseUint(from, 16, 64)
	s.to, err2 = strconv.ParseUint(to, 16, 64)
	return s, err1 == nil && err2 == nil && s.from < s.to
}
