// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// binary is one program that users install.
type binary struct {
	// Name is the name of the built file and of its dependency list.
	Name string
	// Package is the folder of its main package.
	Package string
	// MaxBytes bounds its stripped size on the machine that builds it.
	MaxBytes int64
}

const megabyte = 1000 * 1000

// binaries are the programs that users install, with their size limits.
var binaries = []binary{
	{Name: "kubectl-ocm", Package: "./plugins/kubectl-ocm", MaxBytes: 70 * megabyte},
	{Name: "ocm-hub", Package: "./controllers/ocm-hub", MaxBytes: 34 * megabyte},
	// 5.3 MB of it are CEL with Kubernetes' libraries, which condition rules need.
	{Name: "ocm-agent", Package: "./controllers/ocm-agent", MaxBytes: 28 * megabyte},
	{Name: "managed-serviceaccount", Package: "./controllers/managed-serviceaccount", MaxBytes: 19 * megabyte},
}

// listFolder holds one checked-in dependency list a binary, below the root.
const listFolder = "tools/budgets/deps"

// dependencies compares the packages of other modules that a binary is built from with
// the checked-in list, or rewrites the list if c.Update is set, so that review shows
// every new dependency.
func dependencies(ctx context.Context, c config, b binary) (figure, error) {
	packages, err := goList(ctx, c.Root, "-deps", b.Package)
	if err != nil {
		return figure{}, err
	}
	var now []string
	for _, p := range packages {
		if !p.Standard && p.Module != nil && !p.Module.Main {
			now = append(now, p.ImportPath)
		}
	}
	slices.Sort(now)
	list := listFolder + "/" + b.Name + ".txt"
	file := filepath.Join(c.Root, filepath.FromSlash(list))
	if c.Update {
		if err := writeList(file, now); err != nil {
			return figure{}, err
		}
	}
	recorded, err := readList(file)
	if err != nil {
		return figure{}, err
	}
	var findings []finding
	was, is := sets.New(recorded...), sets.New(now...)
	for _, p := range sets.List(is.Difference(was)) {
		findings = append(findings, finding{File: list, Text: "new: " + p})
	}
	for _, p := range sets.List(was.Difference(is)) {
		findings = append(findings, finding{File: list, Text: "gone: " + p})
	}
	return figure{
		Name:     b.Name + " dependencies",
		Value:    fmt.Sprintf("%d packages", len(now)),
		Budget:   "as recorded",
		Within:   len(findings) == 0,
		Findings: findings,
	}, nil
}

func writeList(file string, lines []string) error {
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing dependency list: %w", err)
	}
	return nil
}

// readList returns nothing for a list that was never recorded.
func readList(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading dependency list: %w", err)
	}
	return strings.Fields(string(text)), nil
}

// binarySize measures a built binary.
func binarySize(folder string, b binary) (figure, error) {
	info, err := os.Stat(filepath.Join(folder, b.Name))
	if err != nil {
		return figure{}, fmt.Errorf("measuring binary %s: %w", b.Name, err)
	}
	f := figure{
		Name:   b.Name + " size",
		Value:  fmt.Sprintf("%.1f MB", float64(info.Size())/megabyte),
		Budget: fmt.Sprintf("< %d MB", b.MaxBytes/megabyte),
		Within: info.Size() < b.MaxBytes,
	}
	if !f.Within {
		f.Findings = []finding{{File: b.Package, Text: fmt.Sprintf("%d bytes", info.Size())}}
	}
	return f, nil
}
