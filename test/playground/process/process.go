// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrUnsupported is returned where this operating system cannot run a playground.
var ErrUnsupported = errors.New("playgrounds run on Linux and macOS only")

// tailSize bounds how much of a log file an error message may read, in bytes.
const tailSize = 8 << 10

// Spec describes a program to run.
type Spec struct {
	// Name of the program in this folder; files are <Dir>/<Name>.pid and .log.
	Name string
	// Dir is the folder for pid file and log.
	Dir string
	// Path of the executable and its arguments.
	Path string
	Args []string
	// Env is the whole environment; nothing is inherited.
	Env []string
	// WorkDir is the working directory; empty is Dir.
	WorkDir string
	// LogFile receives standard output and standard error; empty is <Dir>/<Name>.log.
	LogFile string
}

// Process is a program that this process started.
type Process struct {
	// Name is Spec.Name.
	Name string
	// LogFile holds standard output and standard error, appended.
	LogFile string

	id    identity
	files string
	done  chan struct{}
	state *os.ProcessState
}

// identity identifies one process for good: PIDs are reused, start times are not.
type identity struct {
	PID int `json:"pid"`
	// Started is opaque and system specific (see startOf).
	Started string `json:"started"`
}

// Start runs the program of s in a process group of its own.
func Start(s Spec) (*Process, error) {
	base := filepath.Join(s.Dir, s.Name)
	p := &Process{Name: s.Name, LogFile: s.LogFile, files: base + ".pid", done: make(chan struct{})}
	if p.LogFile == "" {
		p.LogFile = base + ".log"
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log of %s: %w", s.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(s.Path, s.Args...) //nolint:noctx // it outlives every context by design
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.WorkDir, s.Env, log, log
	if cmd.Dir == "" {
		cmd.Dir = s.Dir
	}
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	p.id.PID = cmd.Process.Pid
	err = p.record()
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the state tells how it ended
		p.state = cmd.ProcessState
	}()
	if err != nil {
		return nil, errors.Join(err, signalGroup(p.id.PID, true))
	}
	return p, nil
}

// record writes the pid file, by rename so that no reader sees half of it. A program that
// has already ended needs none. It has not been waited for yet, so the PID is still its
// own.
func (p *Process) record() error {
	started, err := startOf(p.id.PID)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading start time of %s: %w", p.Name, err)
	}
	p.id.Started = started
	data, err := json.Marshal(p.id)
	if err != nil {
		return fmt.Errorf("encoding pid file of %s: %w", p.Name, err)
	}
	if err := os.WriteFile(p.files+".new", data, 0o600); err != nil {
		return fmt.Errorf("writing pid file of %s: %w", p.Name, err)
	}
	if err := os.Rename(p.files+".new", p.files); err != nil {
		return fmt.Errorf("writing pid file of %s: %w", p.Name, err)
	}
	return nil
}

// PID returns the ID of the process and of its group.
func (p *Process) PID() int { return p.id.PID }

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode returns the exit code after Done; as in a shell, it is 128 plus the signal's
// number when a signal ended the program.
func (p *Process) ExitCode() int { return exitCode(p.state) }

// Failure describes an ended program: how it ended and the end of its log.
func (p *Process) Failure() error {
	return fmt.Errorf("%s ended (%v); end of %s:\n%s", p.Name, p.state, p.LogFile, Tail(p.LogFile, 12))
}

// Terminate asks the group to end; see Done.
func (p *Process) Terminate() error { return p.signal(false) }

// Kill kills the group, waits for it, and removes the pid file.
func (p *Process) Kill() error {
	err := p.signal(true)
	<-p.done
	return errors.Join(err, removeFile(p.files))
}

// signal sends a signal to the group while the program runs: after that, its PID may
// belong to another process.
func (p *Process) signal(hard bool) error {
	select {
	case <-p.done:
		return nil
	default:
		return signalGroup(p.id.PID, hard)
	}
}

// Tail returns the last lines of a file, at most n of them and at most 8 KiB. A read
// error becomes part of the text, because it goes into error messages.
func Tail(path string, n int) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > tailSize {
		if _, err := file.Seek(-tailSize, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	data, err := io.ReadAll(io.LimitReader(file, tailSize))
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	var out strings.Builder
	for _, line := range lines[max(0, len(lines)-n):] {
		out.WriteString("  ")
		out.Write(line)
		out.WriteByte('\n')
	}
	return strings.TrimRight(out.String(), "\n")
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
