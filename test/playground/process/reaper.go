// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Reaper ends what its owner started when the owner ends.
type Reaper struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// NewReaper starts the reaper: command is a program (and its arguments) that
// calls Reap with its standard input. env is its whole environment.
func NewReaper(command, env []string) (*Reaper, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // it must outlive its owner
	cmd.Env, cmd.Stderr = env, os.Stderr
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making the reaper's pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the reaper: %w", err)
	}
	return &Reaper{cmd: cmd, pipe: pipe}, nil
}

// Watch adds dir to the reaper: when the owner ends, everything with a pid file below dir
// is ended and dir is removed.
func (r *Reaper) Watch(dir string) error {
	if _, err := fmt.Fprintln(r.pipe, dir); err != nil {
		return fmt.Errorf("telling the reaper of %s: %w", dir, err)
	}
	return nil
}

// Close makes the reaper do its work now and waits for its end.
func (r *Reaper) Close() error {
	return errors.Join(r.pipe.Close(), r.cmd.Wait())
}

// Reap reads folder names, one per line, until in ends; then it ends everything below
// them and removes them. It is all that the reaper's process does.
func Reap(in io.Reader) error {
	var failed []error
	var folders []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		folders = append(folders, lines.Text())
	}
	failed = append(failed, lines.Err())
	for _, dir := range folders {
		failed = append(failed, EndAll(dir), os.RemoveAll(dir))
	}
	return errors.Join(failed...)
}
