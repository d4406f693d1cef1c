// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrBusy is returned by Lock while another process holds the lock.
var ErrBusy = errors.New("another process works on it")

// Lock makes this process the only one that works on the folder dir, which has to exist. The
// lock ends with the process.
func Lock(dir string) (unlock func(), err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrBusy
	}
	if err == nil && !same(folder, dir) {
		err = fs.ErrNotExist // its last owner has removed it
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), folder.Close())
	}
	return func() { _ = folder.Close() }, nil
}

// same reports whether path is still the open folder.
func same(folder *os.File, path string) bool {
	held, err := folder.Stat()
	now, failure := os.Stat(path)
	return err == nil && failure == nil && os.SameFile(held, now)
}
