// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"k8s.io/utils/clock"
)

// Streams are the standard streams, environment and clock of the program.
type Streams struct {
	// In, Out and Err are the three standard streams.
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Getenv returns an environment variable.
	Getenv func(string) string
	// Clock measures elapsed time and ages.
	Clock clock.WithTicker
	// Width overrides the width of the terminal, in columns; 0 asks the terminal. A
	// stream that is not a terminal has no limit.
	Width int
}

// Process returns the streams of the running process.
func Process() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Clock: clock.RealClock{}}
}

// IsTerminal reports whether the stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width returns the width of stdout in columns; 0 means no limit.
func (s Streams) width() int {
	if s.Width > 0 {
		return s.Width
	}
	if f, ok := s.Out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// utf8 reports whether the locale uses UTF-8.
func (s Streams) utf8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := s.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
