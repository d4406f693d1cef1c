// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"sync"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// spinInterval is how often the spinner of a running step moves.
const spinInterval = 120 * time.Millisecond

// Progress shows the steps of one operation on stderr: redrawn in place on a terminal,
// otherwise one line per change, and nothing when quiet.
type Progress struct {
	u        *UI
	terminal bool
	mu       sync.Mutex
	current  fleet.Step
	since    time.Time
	shown    string
	frame    int
	stop     chan struct{}
	stopped  chan struct{}
}

// Progress starts the display of an operation. The caller must close it.
func (u *UI) Progress() *Progress {
	p := &Progress{u: u, terminal: IsTerminal(u.Streams.Err) && u.Streams.Getenv("TERM") != "dumb"}
	if p.terminal && !u.Quiet {
		p.stop, p.stopped = make(chan struct{}), make(chan struct{})
		go p.spin()
	}
	return p
}

// Step shows one step. It is the progress callback for pkg/fleet.
func (p *Progress) Step(s fleet.Step) {
	if p.u.Quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.State == fleet.Running {
		p.current, p.since = s, p.u.Streams.Clock.Now()
		p.showRunning(s)
		return
	}
	p.clear()
	if p.current.Name == s.Name {
		p.current = fleet.Step{}
	}
	p.shown = ""
	p.u.errorLine(p.line(p.u.Symbol(s.State), marks[s.State].tone, s))
}

// showRunning shows a step in progress. If stderr is not a terminal, it prints a line only
// for a step with a detail, and only when the detail changes.
func (p *Progress) showRunning(s fleet.Step) {
	if p.terminal {
		p.draw()
		return
	}
	text := s.Name + "\x00" + s.Detail
	if s.Detail == "" || text == p.shown {
		return
	}
	p.shown = text
	p.u.errorLine(p.line(p.u.Symbol(fleet.Running), plain, s))
}

// nameWidth is the width of the longest step name, in columns. The elapsed time is between
// name and detail, so that the lines align however long a detail is.
const nameWidth = 29

func (p *Progress) line(mark string, tone tone, s fleet.Step) string {
	text := fmt.Sprintf("%-*s %6.1fs", nameWidth, s.Name, s.Elapsed.Seconds())
	if detail := Told(fleet.Note{Text: s.Detail, Fix: s.Fix}, "; "); detail != "" {
		text += "  " + p.u.Own(tidy(detail))
	}
	return paint(p.u.coloured(p.u.Streams.Err), tone, mark) + " " + text
}

func (p *Progress) draw() {
	if p.current.Name == "" {
		return
	}
	frames := []string{"|", "/", "-", `\`}
	if p.u.Streams.utf8() {
		frames = []string{"⠋", "⠙", "⠸", "⠴", "⠦", "⠇"}
	}
	s := p.current
	s.Elapsed += p.u.Streams.Clock.Since(p.since)
	text := p.line(frames[p.frame%len(frames)], pending, s)
	if w := p.u.Streams.width(); w > 0 {
		text = cut(text, w-1)
	}
	_, _ = fmt.Fprint(p.u.Streams.Err, "\r\x1b[K"+text)
	p.shown = text
}

func (p *Progress) clear() {
	if p.terminal && p.shown != "" {
		_, _ = fmt.Fprint(p.u.Streams.Err, "\r\x1b[K")
	}
}

func (p *Progress) spin() {
	defer close(p.stopped)
	ticker := p.u.Streams.Clock.NewTicker(spinInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C():
			p.mu.Lock()
			p.frame++
			p.draw()
			p.mu.Unlock()
		}
	}
}

// Close stops the display and leaves the cursor on an empty line.
func (p *Progress) Close() {
	if p.stop != nil {
		close(p.stop)
		<-p.stopped
		p.stop = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current.Name != "" {
		p.clear()
	}
}

// cut truncates text to n columns.
func cut(text string, n int) string {
	end, _ := measure(text, n)
	return text[:end]
}

// measure returns where the text ends that fits into n columns, and how many it takes; escape codes
// have no width.
func measure(text string, n int) (end, columns int) {
	escape := false
	for i, r := range text {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm' && r != 'K'
		case columns >= n:
			return i, columns
		default:
			columns++
		}
	}
	return len(text), columns
}
