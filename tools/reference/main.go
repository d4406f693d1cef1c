// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
)

func main() {
	root := flag.String("root", ".", "folder of the checkout")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintf(os.Stderr, "reference: %v\n", err)
		os.Exit(1)
	}
}

// write updates the pages below root, and removes those of commands that no longer exist.
func write(root string) error {
	pages, err := pages(root)
	if err != nil {
		return err
	}
	there, err := filepath.Glob(filepath.Join(root, "docs", "cli", "*.md"))
	if err != nil {
		return err
	}
	for _, file := range there {
		if _, wanted := pages[file]; !wanted {
			err = errors.Join(err, os.Remove(file))
		}
	}
	for file, text := range pages {
		err = errors.Join(err, os.WriteFile(file, []byte(text), 0o644))
	}
	return err
}

// pages returns the full text of every page that has generated parts.
func pages(root string) (map[string]string, error) {
	commands := app.Documented()
	pages := map[string]string{}
	for _, c := range documented(commands) {
		pages[filepath.Join(root, "docs", "cli", c.Name()+".md")] = commandPage(c)
	}
	written, err := filepath.Glob(filepath.Join(root, "docs", "reference", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(written, filepath.Join(root, "docs", "cli", "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if pages[file], err = fill(string(text), commands); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return pages, nil
}

// part is a generated part of a page, with its markers.
var part = regexp.MustCompile(`(?s)<!-- begin ([^>]*) -->\n(.*?)<!-- end -->\n`)

// fill replaces the text between the markers of a page.
func fill(page string, commands *cobra.Command) (string, error) {
	var failures error
	filled := part.ReplaceAllStringFunc(page, func(old string) string {
		source := part.FindStringSubmatch(old)[1]
		text, err := generated(strings.Fields(source), commands)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("part %q: %w", source, err))
		}
		return "<!-- begin " + source + " -->\n\n" + text + "\n<!-- end -->\n"
	})
	if strings.Count(filled, "<!-- begin ") != len(part.FindAllString(filled, -1)) {
		failures = errors.Join(failures, errors.New("a part has no end"))
	}
	return filled, failures
}

// generated returns the text for a marker.
func generated(source []string, commands *cobra.Command) (string, error) {
	switch {
	case len(source) == 1 && source[0] == "commands":
		return commandIndex(commands), nil
	case len(source) == 1 && source[0] == "flags":
		return flagTable(commands.PersistentFlags()), nil
	case len(source) == 2 && source[0] == "kind":
		return kindTable(source[1])
	case len(source) >= 3 && source[0] == "fields":
		return fieldTables(source[1], source[2], source[3:])
	}
	return "", errors.New("no generated part has that name")
}

// table renders a Markdown table. It escapes | and line breaks in cells.
func table(heads []string, rows [][]string) string {
	var out strings.Builder
	line := func(cells []string) {
		for _, cell := range cells {
			cell = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`)
			fmt.Fprintf(&out, "| %s ", cell)
		}
		out.WriteString("|\n")
	}
	line(heads)
	out.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return out.String()
}

// prose escapes plain text for Markdown.
func prose(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "[", `\[`, "__", `\_\_`).Replace(text)
}

// code renders text as code; empty text stays empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
