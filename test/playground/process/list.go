// SPDX-License-Identifier: Apache-2.0

package process

import (
	"path/filepath"
	"strings"
)

// Running is a program that is alive.
type Running struct {
	// Name and Dir are those of its Spec.
	Name, Dir string
	// PID is the ID of its process.
	PID int
}

// List returns the programs with a pid file below dir that are alive, those of the upper
// folders first. A missing folder has none.
func List(dir string) ([]Running, error) {
	files, err := pidFiles(dir)
	if err != nil {
		return nil, err
	}
	var out []Running
	for _, file := range files {
		if id, err := read(file); err == nil && id.alive() {
			out = append(out, Running{Name: strings.TrimSuffix(filepath.Base(file), ".pid"), Dir: filepath.Dir(file), PID: id.PID})
		}
	}
	return out, nil
}
