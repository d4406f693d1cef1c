// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// terminal is a real one, and what a person sees on it.
type terminal struct {
	*os.File
	mu       sync.Mutex
	lines    [][]rune
	row, col int
	width    int
	// code is the part of an escape code that was read.
	code string
}

// newTerminal opens a terminal of some size.
func newTerminal(t *testing.T, width, height int) *terminal {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}))
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	out := &terminal{File: slave, width: width, lines: [][]rune{nil}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 1<<16)
		for {
			n, err := master.Read(buffer)
			if err != nil {
				return
			}
			out.write(string(buffer[:n]))
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, slave.Close())
		<-read // the end of a terminal whose programs have closed it
		require.NoError(t, master.Close())
	})
	return out
}

// write does what a terminal does with text and the escape codes of a screen.
func (s *terminal) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range text {
		switch {
		case s.code != "" || r == '\x1b':
			if s.code += string(r); strings.ContainsRune("AJKm", r) {
				s.escape(r)
				s.code = ""
			}
		case r == '\r':
			s.col = 0
		case r == '\n':
			s.down()
		default:
			if s.col == s.width {
				s.down()
				s.col = 0
			}
			s.lines[s.row] = append(s.lines[s.row][:s.col:s.col], append([]rune{r}, s.lines[s.row][min(s.col+1, len(s.lines[s.row])):]...)...)
			s.col++
		}
	}
}

func (s *terminal) down() {
	if s.row++; s.row == len(s.lines) {
		s.lines = append(s.lines, nil)
	}
}

func (s *terminal) escape(code rune) {
	switch code {
	case 'A':
		up, _ := strconv.Atoi(strings.Trim(s.code, "\x1b[A"))
		s.row -= up
	case 'J':
		s.lines = s.lines[:s.row+1]
		fallthrough
	case 'K':
		s.lines[s.row] = s.lines[s.row][:s.col]
	}
}

// text returns what a person sees.
func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	for _, line := range s.lines {
		out.WriteString(string(line) + "\n")
	}
	return strings.TrimRight(out.String(), "\n")
}

// watched is a list that changes each time it is read.
func watched(reads *int) func(context.Context) (Listed, error) {
	return func(context.Context) (Listed, error) {
		*reads++
		list := Listed{Table: ui.Table{Heads: []string{"NAME", "STATE"}}}
		switch *reads {
		case 1:
			list.Add("c1", nil, "c1", "Joining")
			list.Add("c2", nil, "c2", "Available")
		case 2:
			return Listed{}, errors.New("the hub does not answer")
		case 3:
			for i := range 9 {
				list.Add("", nil, fmt.Sprintf("c%d", i+1), "Available")
			}
		default:
			list.Add("c1", nil, "c1", "Available")
		}
		return list, nil
	}
}

func TestAWatchedListIsDrawnInPlace(t *testing.T) {
	screen := newTerminal(t, 40, 6)
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	u := &ui.UI{Streams: ui.Streams{Out: screen.File, Err: screen.File, Clock: clk, Getenv: func(string) string { return "" }}}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	reads := 0
	go func() { ended <- (&Listing{Watch: true}).Show(ctx, u, watched(&reads)) }()
	for _, want := range []string{
		"NAME   STATE\nc1     Joining\nc2     Available",
		"NAME   STATE\nc1     Joining\nc2     Available\nwarning: not up to date: the hub does no\nt answer",
		"NAME   STATE\nc1     Available\nc2     Available\nc3     Available\nand 6 more",
		"NAME   STATE\nc1     Available",
	} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			require.Equal(c, want, screen.text())
			require.True(c, clk.HasWaiters())
		}, time.Minute, time.Millisecond)
		clk.Step(watchPause)
	}
	interrupt()
	require.NoError(t, <-ended)
}
