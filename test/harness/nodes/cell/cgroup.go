// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cgroups is where control groups are mounted: one hierarchy (version 2), or a
// folder of several (version 1).
const cgroups = "/sys/fs/cgroup"

// programs is the group, below the cell's own, for what package nodes starts. A version 2
// group that has child groups may not hold processes itself.
const programs = "programs"

// cloneCgroup is CLONE_NEWCGROUP, which package syscall does not define.
const cloneCgroup = 0x02000000

// hierarchy is one tree of control groups.
type hierarchy struct {
	// point is where it is mounted; kind and data are the type and options of the mount.
	point, kind, data string
}

// hierarchies returns the ones that are mounted at or below cgroups, outermost first.
func hierarchies() ([]hierarchy, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []hierarchy
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		mount, filesystem, ok := strings.Cut(lines.Text(), " - ")
		before, after := strings.Fields(mount), strings.Fields(filesystem)
		if !ok || len(before) < 5 || len(after) < 3 || !strings.HasPrefix(after[0], "cgroup") || !strings.HasPrefix(before[4], cgroups) {
			continue
		}
		one := hierarchy{point: before[4], kind: after[0]}
		if one.kind == "cgroup" {
			// The remaining options name the controllers.
			general := []string{"rw", "ro", "xattr", "clone_children"}
			options := slices.DeleteFunc(strings.Split(after[2], ","), func(option string) bool {
				return slices.Contains(general, option) || strings.HasPrefix(option, "release_agent=")
			})
			one.data = strings.Join(options, ",")
		}
		found = append(found, one)
	}
	return found, lines.Err()
}

// makeCgroups makes the cell's group and the one for programs in each hierarchy.
func makeCgroups(all []hierarchy, name string) error {
	for _, one := range all {
		parent := one.point
		for _, part := range []string{name, programs} {
			group := filepath.Join(parent, part)
			if err := os.Mkdir(group, 0o755); err != nil {
				return err
			}
			if err := inherit(parent, group); err != nil {
				return err
			}
			parent = group
		}
	}
	return nil
}

// inherit copies the settings without which a version 1 group accepts no process.
func inherit(parent, group string) error {
	for _, setting := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, setting))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if text := strings.TrimSpace(string(value)); err == nil && text != "" {
			err = os.WriteFile(filepath.Join(group, setting), []byte(text), 0)
		}
		if err != nil {
			return fmt.Errorf("setting %s of %s: %w", setting, group, err)
		}
	}
	return nil
}

// join moves this process into a group of every hierarchy that lies at prefix.
func join(all []hierarchy, prefix, group string) error {
	for _, one := range all {
		if err := os.WriteFile(filepath.Join(prefix, one.point, group, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("joining control group %s: %w", group, err)
		}
	}
	return nil
}

// confine makes the cell's own group the top of every hierarchy that is visible below
// root: runc needs paths that agree everywhere, which only a cgroup namespace provides.
// The calling thread must be the main one.
func confine(root, name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	if err := makeCgroups(all, name); err != nil {
		return err
	}
	if err := join(all, "/", name); err != nil {
		return err
	}
	if err := syscall.Unshare(cloneCgroup); err != nil {
		return fmt.Errorf("making a namespace of control groups: %w", err)
	}
	top := filepath.Join(root, cgroups)
	if err := syscall.Unmount(top, syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("hiding the machine's control groups: %w", err)
	}
	if all[0].point != cgroups {
		if err := syscall.Mount("cgroups", top, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting the folder of control groups: %w", err)
		}
	}
	for _, one := range all {
		point := filepath.Join(root, one.point)
		if err := os.MkdirAll(point, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("cgroup", point, one.kind, 0, one.data); err != nil {
			return fmt.Errorf("mounting control groups at %s: %w", one.point, err)
		}
	}
	return join(all, root, programs)
}

// removeCgroups removes what confine created, innermost first. The processes have ended,
// but the kernel may need a moment to notice.
func removeCgroups(name string) error {
	if name == "" {
		return nil
	}
	all, err := hierarchies()
	if err != nil {
		return err
	}
	var failed []error
	for _, one := range all {
		failed = append(failed, removeCgroup(filepath.Join(one.point, name)))
	}
	return errors.Join(failed...)
}

func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroup(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Rmdir(dir)
		if err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("removing control group %s: %w", dir, err)
		}
	}
}
