// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// inhabit is the inner process, PID 1 of the cell. It ends only when it is killed.
func inhabit(o options) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	if err := syscall.Sethostname([]byte(o.name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("detaching from the machine's mounts: %w", err)
	}
	if o.root {
		if err := enterRoot(o.dir, o.cgroup); err != nil {
			return err
		}
	}
	if _, err := os.Stdout.Write([]byte("\n")); err != nil {
		return err
	}
	for range children { // orphans of the cell come here to be reaped
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
	return nil
}

// enterRoot builds the cell's file system and makes it the root: the machine's
// own under a layer in memory, its other mounts, a new /proc and /run, control
// groups below one of its own, and dir as it is.
func enterRoot(dir, cgroup string) error {
	root, err := overlay(filepath.Join(dir, "layer"))
	if err != nil {
		return err
	}
	others, err := mounts(dir)
	if err != nil {
		return err
	}
	for _, point := range others {
		if err := syscall.Mount(point, filepath.Join(root, point), "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("binding %s: %w", point, err)
		}
	}
	if err := syscall.Mount(dir, filepath.Join(root, dir), "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s: %w", dir, err)
	}
	if err := syscall.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := syscall.Mount("run", filepath.Join(root, "run"), "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	if err := confine(root, cgroup); err != nil {
		return err
	}
	return pivot(root)
}

// overlay mounts the machine's root below layer, so that changes are kept in memory, and
// returns the mount point.
func overlay(layer string) (string, error) {
	if err := os.MkdirAll(layer, 0o700); err != nil {
		return "", err
	}
	if err := syscall.Mount("layer", layer, "tmpfs", 0, "mode=755"); err != nil {
		return "", fmt.Errorf("mounting the layer: %w", err)
	}
	for _, name := range []string{"root", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(layer, name), 0o755); err != nil {
			return "", err
		}
	}
	root := filepath.Join(layer, "root")
	data := fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%s/work", layer, layer)
	if err := syscall.Mount("root", root, "overlay", 0, data); err != nil {
		return "", fmt.Errorf("mounting the root: %w", err)
	}
	return root, nil
}

// pivot makes root the root of this mount namespace and unmounts the old one.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// kubelet mounts volumes, which must be visible to what containerd starts.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts inside: %w", err)
	}
	return nil
}

// mounts returns the mount points that the cell shares with the machine: the outermost
// ones, without the root, /proc, /run and anything below dir.
func mounts(dir string) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var points []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			return nil, errors.New("unexpected content of /proc/self/mountinfo")
		}
		points = append(points, unescape(fields[4]))
	}
	slices.Sort(points)
	var outer []string
	within := func(point, of string) bool { return point == of || strings.HasPrefix(point, of+"/") }
	for _, point := range points {
		covered := point == "/" || within(point, "/proc") || within(point, "/run") || within(point, dir)
		for _, known := range outer {
			covered = covered || within(point, known)
		}
		if !covered {
			outer = append(outer, point)
		}
	}
	return outer, nil
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
