// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// missing lists the programs that dir does not hold in the wanted version.
func missing(dir string, wanted []program, versions map[string]string) []program {
	var left []program
	for _, p := range wanted {
		info, err := buildinfo.ReadFile(filepath.Join(dir, p.name))
		if err != nil || version(info, p.module) != versions[p.module] {
			left = append(left, p)
		}
	}
	return left
}

// version of a module that a program was built from.
func version(info *buildinfo.BuildInfo, module string) string {
	if info.Main.Path == module {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return ""
}

// given reports whether a folder given by the user holds every wanted program, and a
// kube-apiserver of exactly this version.
func given(ctx context.Context, dir, version string, wanted []program) bool {
	for _, p := range wanted {
		if info, err := os.Stat(filepath.Join(dir, p.name)); err != nil || info.IsDir() {
			return false
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "kube-apiserver"), "--version").Output()
	return err == nil && strings.TrimSpace(string(out)) == "Kubernetes "+version
}

// lock waits until this process is the only builder. The lock ends with the process, so a
// killed builder blocks no other.
func lock(out io.Writer, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Fprintln(out, "waiting for another build of Kubernetes to end")
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", path, err)
		}
	}
	return func() { _ = file.Close() }, nil
}
