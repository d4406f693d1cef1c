// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	// licenceHeader is the first line of every hand-written Go file.
	licenceHeader = "// SPDX-License-Identifier: Apache-2.0\n"
	// maxDepth bounds the number of folders between the root and a package's files.
	maxDepth = 4
	// maxFiles bounds the files of a package, without tests and generated ones, so that a
	// reader can grasp it at once. The API types have one file for each kind.
	maxFiles = 25
)

// bannedNames are names that do not describe the purpose of a package.
var bannedNames = []string{"util", "utils", "helper", "helpers", "common", "misc", "types"}

// licenceHeaders counts the hand-written files that start with the licence
// line; tests count too.
func licenceHeaders(t *tree) figure {
	var findings []finding
	total := 0
	for _, f := range t.All {
		if f.Generated {
			continue
		}
		total++
		if !bytes.HasPrefix(f.Source, []byte(licenceHeader)) {
			findings = append(findings, finding{f.Path, 1, "does not start with " + strings.TrimSpace(licenceHeader)})
		}
	}
	return share("licence headers", total, findings)
}

// packageNames counts the packages whose folder and name describe their purpose and
// repeat no element of their path.
func packageNames(t *tree) figure {
	var findings []finding
	packages := t.packages()
	for dir, files := range packages {
		name := files[0].Syntax.Name.Name
		if slices.Contains(bannedNames, name) || slices.Contains(bannedNames, path.Base(dir)) {
			findings = append(findings, finding{File: dir, Text: "package " + name + ": the name is banned"})
		} else if twice := repeated(strings.Split(dir, "/")); twice != "" {
			findings = append(findings, finding{File: dir, Text: "the path repeats " + twice})
		}
	}
	return share("package names", len(packages), findings)
}

func repeated(elements []string) string {
	for i, e := range elements {
		if slices.Contains(elements[:i], e) {
			return e
		}
	}
	return ""
}

// packageFiles measures how many files the fullest package has.
func packageFiles(t *tree) figure {
	var all []sized
	for dir, files := range t.packages() {
		if !strings.HasPrefix(dir+"/", apiFolder) {
			all = append(all, sized{finding{File: dir, Text: fmt.Sprintf("%d files", len(files))}, len(files)})
		}
	}
	return largest("files of a package", maxFiles, all)
}

// packageDepth measures how many folders deep the deepest package lies.
func packageDepth(t *tree) figure {
	var all []sized
	for dir := range t.packages() {
		depth := 0
		if dir != "." {
			depth = strings.Count(dir, "/") + 1
		}
		all = append(all, sized{finding{File: dir, Text: fmt.Sprintf("%d folders deep", depth)}, depth})
	}
	return largest("package depth", maxDepth, all)
}
