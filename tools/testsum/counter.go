// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// event is one line of "go test -json" (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

// results is the outcome of one run of "go test".
type results struct {
	Passed, Failed, Skipped int
	// Packages are the closing lines of the packages, as "go test" prints them; packages
	// without tests are omitted.
	Packages []string
	// Slow are the tests that took slowFrom or more; tests with subtests are represented
	// by those.
	Slow []slow
	// Failures are the failed tests that say why.
	Failures []failure
}

// slow is a test and its duration.
type slow struct {
	Test    string
	Seconds float64
}

// slowFrom is the duration in seconds from which on a test is slow.
const slowFrom = 10

func (r *results) add(other results) {
	r.Passed += other.Passed
	r.Failed += other.Failed
	r.Skipped += other.Skipped
	r.Packages = append(r.Packages, other.Packages...)
	r.Slow = append(r.Slow, other.Slow...)
	r.Failures = append(r.Failures, other.Failures...)
}

// test names one test of one package; name is empty for the package itself.
type test struct {
	pkg, name string
}

// counter turns events into results and prints what a developer must see.
type counter struct {
	out     io.Writer
	verdict map[test]string
	parent  map[test]bool
	output  map[test][]string
	closing map[string]string
	seconds map[test]float64
	sum     results
}

func newCounter(out io.Writer) *counter {
	return &counter{
		out:     out,
		verdict: map[test]string{},
		parent:  map[test]bool{},
		output:  map[test][]string{},
		closing: map[string]string{},
		seconds: map[test]float64{},
	}
}

// see processes one event.
func (c *counter) see(e event) {
	key := test{e.Package, e.Test}
	if e.Elapsed >= slowFrom {
		c.seconds[key] = e.Elapsed
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(c.out, e.Output)
	case "run":
		if i := strings.LastIndex(e.Test, "/"); i > 0 {
			c.parent[test{e.Package, e.Test[:i]}] = true
		}
		c.verdict[key] = "run"
	case "output":
		c.keep(key, e.Output)
	case "pass", "skip", "fail":
		c.verdict[key] = e.Action
		if e.Action == "fail" {
			c.show(key)
		}
		delete(c.output, key)
		if e.Test == "" {
			c.close(e)
		}
	}
}

// keep stores output until the verdict of its test is known. The package's own closing
// line ("ok ...") is stored separately.
func (c *counter) keep(key test, output string) {
	if key.name == "" {
		for _, prefix := range []string{"ok  \t", "FAIL\t", "---\t"} {
			if strings.HasPrefix(output, prefix) {
				c.closing[key.pkg] = strings.TrimRight(output, "\n")
				return
			}
		}
	}
	c.output[key] = append(c.output[key], output)
}

// show prints the output of a failed test, first of all why it failed.
func (c *counter) show(key test) {
	reasons, around := explained(c.output[key])
	delete(c.output, key)
	if len(reasons) > 0 {
		name := title(key)
		fmt.Fprintf(c.out, "FAIL %s\n", name)
		c.sum.Failures = append(c.sum.Failures, failure{Test: name, Lines: brief(reasons)})
	}
	for _, line := range append(reasons, around...) {
		fmt.Fprint(c.out, line)
	}
}

// title names a test with the last element of its package.
func title(key test) string {
	return strings.TrimSuffix(path.Base(key.pkg)+"."+key.name, ".")
}

// close ends a package. Tests that are still running when their package fails have failed
// too (a panic, a timeout).
func (c *counter) close(e event) {
	var lost []test
	for key, verdict := range c.verdict {
		if key.pkg == e.Package && key.name != "" && verdict == "run" {
			lost = append(lost, key)
		}
	}
	slices.SortFunc(lost, func(a, b test) int { return strings.Compare(a.name, b.name) })
	for _, key := range lost {
		c.verdict[key] = "fail"
		c.show(key)
	}
	line, ok := c.closing[e.Package]
	if !ok && e.Action == "fail" {
		line, ok = fmt.Sprintf("FAIL\t%s\t%.3fs", e.Package, e.Elapsed), true
	}
	if ok {
		fmt.Fprintln(c.out, line)
		c.sum.Packages = append(c.sum.Packages, line)
	}
}

// finish counts the tests, those with subtests by their subtests, and a package that
// failed without a failing test as one failure.
func (c *counter) finish() results {
	for key, verdict := range c.verdict {
		leaf := key.name != "" && !c.parent[key]
		switch {
		case verdict == "pass" && leaf:
			c.sum.Passed++
		case verdict == "skip" && leaf:
			c.sum.Skipped++
		case (verdict == "fail" || verdict == "run") && !c.failingBelow(key):
			c.sum.Failed++
		}
	}
	for key, seconds := range c.seconds {
		if key.name != "" && !c.parent[key] {
			c.sum.Slow = append(c.sum.Slow, slow{Test: title(key), Seconds: seconds})
		}
	}
	return c.sum
}

// failingBelow reports whether a subtest of the test, or a test of the package, failed,
// so that its own failure is not counted again.
func (c *counter) failingBelow(key test) bool {
	for other, verdict := range c.verdict {
		if other.pkg != key.pkg || other.name == key.name || verdict != "fail" {
			continue
		}
		if key.name == "" || strings.HasPrefix(other.name, key.name+"/") {
			return true
		}
	}
	return false
}
