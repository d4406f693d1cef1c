// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
)

// page is a document that a comment names.
var page = regexp.MustCompile(`[\w./-]*\w\.md\b`)

// citations counts the documents named in comments that exist in the repository: by their
// path from the root, or from the file's own folder. Generated files and tests count too.
func citations(t *tree) figure {
	var findings []finding
	total := 0
	for _, f := range t.All {
		for _, group := range f.Syntax.Comments {
			for _, comment := range group.List {
				for _, name := range page.FindAllString(comment.Text, -1) {
					total++
					if !t.has(name) && !t.has(path.Join(f.Dir, name)) {
						findings = append(findings, finding{f.Path, t.line(comment.Pos()), fmt.Sprintf("%s is not in the repository", name)})
					}
				}
			}
		}
	}
	return share("citations", total, findings)
}

// has reports whether there is such a file below the root.
func (t *tree) has(name string) bool {
	info, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(name)))
	return err == nil && info.Mode().IsRegular()
}
