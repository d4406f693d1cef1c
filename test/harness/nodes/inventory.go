// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Inventory is what clusters could leave behind on a machine: network namespaces,
// interfaces, packet filter tables, mounts, control groups, folders, and processes of the
// harness. Each entry is a kind and a name.
type Inventory map[string]bool

// places are where kubelet, containerd, runc and CNI plugins are known to write when they
// run outside a cell.
var places = []string{
	"/etc/cni", "/etc/kubernetes", "/opt/cni", "/run/containerd", "/run/containerd-state", "/run/flannel", "/run/netns", "/run/runc",
	"/usr/libexec/kubernetes", "/var/lib/cni", "/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods",
}

// TakeInventory returns the current inventory of the machine.
func TakeInventory() (Inventory, error) {
	found := Inventory{}
	for _, add := range []func(Inventory) error{addFolders, addNetwork, addMounts, addCgroups, addProcesses} {
		if err := add(found); err != nil {
			return nil, fmt.Errorf("taking the inventory of the machine: %w", err)
		}
	}
	return found, nil
}

// Added lists what is in after and not in i, sorted.
func (i Inventory) Added(after Inventory) []string {
	var added []string
	for entry := range after {
		if !i[entry] {
			added = append(added, entry)
		}
	}
	slices.Sort(added)
	return added
}

// ownerFormat finds the owner and the fabric in a process entry of TakeInventory;
// fabricFormat finds the fabric in any entry.
var (
	ownerFormat  = regexp.MustCompile(`^process .* -owner ([0-9]+) .*/(` + folderPrefix + `[0-9]+)`)
	fabricFormat = regexp.MustCompile(folderPrefix + `[0-9]+`)
)

// withoutOthers leaves out what belongs to fabrics of other running processes: they may
// have started in the meantime.
func (i Inventory) withoutOthers() Inventory {
	others := map[string]bool{}
	for entry := range i {
		if found := ownerFormat.FindStringSubmatch(entry); found != nil && found[1] != strconv.Itoa(os.Getpid()) {
			if _, err := os.Stat("/proc/" + found[1]); err == nil {
				others[found[2]] = true
			}
		}
	}
	own := Inventory{}
	for entry := range i {
		if id := fabricFormat.FindString(entry); !others[id] {
			own[entry] = true
		}
	}
	return own
}

func (i Inventory) add(kind, name string) { i[kind+" "+name] = true }

func addFolders(found Inventory) error {
	own, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range append(own, places...) {
		if _, err := os.Lstat(dir); err != nil {
			continue
		}
		found.add("folder", dir)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it is already gone
		}
		for _, entry := range entries {
			found.add("folder", filepath.Join(dir, entry.Name()))
		}
	}
	return nil
}

func addNetwork(found Inventory) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, one := range interfaces {
		found.add("interface", one.Name)
	}
	tables, err := exec.Command("nft", "list", "tables").Output() //nolint:noctx // it only reads
	if err != nil {
		return fmt.Errorf("listing packet filter tables: %w", err)
	}
	for line := range strings.Lines(string(tables)) {
		found.add("nft", strings.TrimSpace(line))
	}
	return nil
}

func addMounts(found Inventory) error {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 {
			found.add("mount", fields[4])
		}
	}
	return lines.Err()
}

// addCgroups adds the groups directly below the root of each hierarchy, and further down
// only those of a fabric: what the machine itself runs creates groups within its own.
func addCgroups(found Inventory) error {
	const root = "/sys/fs/cgroup"
	top := 1 // one hierarchy
	if _, err := os.Stat(root + "/cgroup.controllers"); err != nil {
		top = 2 // one for each controller
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil //nolint:nilerr // what goes away meanwhile is no matter
		}
		depth := strings.Count(strings.TrimPrefix(path, root), "/")
		if depth <= top || strings.Contains(path, folderPrefix) {
			found.add("cgroup", path)
		}
		return nil
	})
}

// addProcesses adds the processes of a fabric, found by their arguments: every one of
// them names the fabric's folder or control group.
func addProcesses(found Inventory) error {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			continue // it has already ended
		}
		if line := strings.ReplaceAll(string(body), "\x00", " "); strings.Contains(line, "/"+folderPrefix) {
			found.add("process", filepath.Base(filepath.Dir(file))+" "+line)
		}
	}
	return nil
}
