// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"os"
	"time"

	"k8s.io/utils/clock"
)

// filesEvery is how often mounted files are compared. That costs no request, and the kubelet
// takes much longer to change them.
const filesEvery = 2 * time.Second

// changedFile is the error that a file differs from what it was when the process started.
type changedFile string

func (c changedFile) Error() string { return string(c) + " changed" }

// files are digests of watched files by path; the zero digest is that of a missing one.
type files map[string][sha256.Size]byte

func readFiles(paths []string) files {
	f := files{}
	for _, path := range paths {
		f[path] = digestOf(path)
	}
	return f
}

func digestOf(path string) [sha256.Size]byte {
	raw, err := os.ReadFile(inPod(path))
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(raw)
}

// watch ends with changedFile when a file has appeared, changed or vanished.
func (f files) watch(ctx context.Context, clk clock.WithTicker) error {
	ticker := clk.NewTicker(filesEvery)
	defer ticker.Stop()
	for {
		for path, before := range f {
			if digestOf(path) != before {
				return changedFile(path)
			}
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}
