// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// subjectsSince is the last commit before subjects had a required form.
	subjectsSince = "2da0e32daad6b1f3ea2fac6ab922da79857e34fa"
	// maxSubject bounds the characters of a subject.
	maxSubject = 72
)

// subject is the form of a commit's subject: the area, and what changes.
var subject = regexp.MustCompile(`^[a-z0-9][a-z0-9/.-]*: [a-z0-9"].*[^.]$`)

// subjects counts the commits after since whose subjects have the form. A tree without
// that history, such as an unpacked archive or a shallow clone, has none to count.
func subjects(ctx context.Context, root, since string) figure {
	var findings []finding
	total := 0
	git := func(arguments ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...).Output()
		return string(out), err
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || strings.TrimSpace(shallow) == "true" {
		return share("commit subjects", 0, nil)
	}
	out, err := git("log", "--format=%h %s", since+"..HEAD")
	if err != nil {
		return share("commit subjects", 1, []finding{{File: since, Text: "is not in the history"}})
	}
	for line := range strings.Lines(out) {
		hash, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		total++
		switch length := utf8.RuneCountInString(text); {
		case length > maxSubject:
			findings = append(findings, finding{File: hash, Text: fmt.Sprintf("%d characters, at most %d: %s", length, maxSubject, text)})
		case !subject.MatchString(text):
			findings = append(findings, finding{File: hash, Text: `is not of the form "area: what changes": ` + text})
		}
	}
	return share("commit subjects", total, findings)
}
