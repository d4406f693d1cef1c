// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// endPatience bounds how long a killed process may take to vanish; pollEvery is the
// interval at which that is checked.
const (
	endPatience = 10 * time.Second
	pollEvery   = 5 * time.Millisecond
)

// Alive reports whether the program called name in dir, started by any process, still
// runs.
func Alive(dir, name string) bool {
	id, err := read(filepath.Join(dir, name+".pid"))
	return err == nil && id.alive()
}

// End kills the program called name in dir, if it still runs, waits until it is gone, and
// removes its pid file. Having nothing to end is not an error.
func End(dir, name string) error { return end(filepath.Join(dir, name+".pid")) }

// Signal pauses (SIGSTOP) or resumes (SIGCONT) the program called name in dir, and the
// programs that it started. Threads stop one after the other, each when it is next
// scheduled: the program itself has stopped when Signal returns.
func Signal(dir, name string, paused bool) error {
	id, err := read(filepath.Join(dir, name+".pid"))
	if err != nil {
		return err
	}
	if !id.alive() {
		return fmt.Errorf("pausing or resuming %s: it does not run", name)
	}
	group := -id.PID
	if !paused {
		return pause(group, false)
	}
	// Pause only the program at first. While it starts another one, it waits in the
	// kernel, where it cannot be stopped, and a stopped child would never end that wait.
	if err := pause(id.PID, true); err != nil {
		return err
	}
	still := func(context.Context) (bool, error) { return stopped(id.PID) }
	if err := wait.PollUntilContextTimeout(context.Background(), pollEvery, endPatience, true, still); err != nil {
		return fmt.Errorf("pausing %s: %w", name, err)
	}
	return pause(group, true)
}

// EndAll kills every program that has a pid file below dir. Programs nearest to the top
// are killed first, and it repeats until nothing is left, so that a program that starts
// others cannot outrun it. A missing folder is not an error.
func EndAll(dir string) error {
	for {
		files, err := pidFiles(dir)
		if err != nil || len(files) == 0 {
			return err
		}
		var failed []error
		for _, file := range files {
			failed = append(failed, end(file))
		}
		if err := errors.Join(failed...); err != nil {
			return err
		}
	}
}

// pidFiles returns the pid files below dir, those of the upper folders first.
func pidFiles(dir string) ([]string, error) {
	var levels [][]string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".pid" {
			return err
		}
		depth := strings.Count(path, string(filepath.Separator))
		for len(levels) <= depth {
			levels = append(levels, nil)
		}
		levels[depth] = append(levels[depth], path)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for pid files below %s: %w", dir, err)
	}
	var files []string
	for _, level := range levels {
		files = append(files, level...)
	}
	return files, nil
}

func end(file string) error {
	id, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && id.alive() {
		if err := signalGroup(id.PID, true); err != nil {
			return fmt.Errorf("ending process %d of %s: %w", id.PID, file, err)
		}
		gone := func(context.Context) (bool, error) { return !id.alive(), nil }
		if err := wait.PollUntilContextTimeout(context.Background(), pollEvery, endPatience, true, gone); err != nil {
			return fmt.Errorf("waiting for the end of process %d of %s: %w", id.PID, file, err)
		}
	}
	return removeFile(file)
}

// alive reports whether the recorded process still exists and is not a zombie.
func (i identity) alive() bool {
	started, err := startOf(i.PID)
	return err == nil && started == i.Started
}

func read(file string) (identity, error) {
	var id identity
	data, err := os.ReadFile(file)
	if err != nil {
		return id, fmt.Errorf("reading pid file: %w", err)
	}
	if err := json.Unmarshal(data, &id); err != nil {
		return id, fmt.Errorf("reading pid file %s: %w", file, err)
	}
	if id.PID <= 1 {
		return id, fmt.Errorf("reading pid file %s: %d is no process of a playground", file, id.PID)
	}
	return id, nil
}
