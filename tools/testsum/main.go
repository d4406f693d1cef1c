// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	exitPassed = 0
	exitFailed = 1
	exitUsage  = 2
)

// maxLine bounds one line of input; a test may print long lines.
const maxLine = 16 << 20

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("testsum", flag.ContinueOnError)
	flags.SetOutput(stderr)
	record := flags.String("record", "", "file to append the results to")
	total := flags.String("total", "", "file of recorded results to sum up instead of reading standard input")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitPassed
		}
		return exitUsage
	}
	var sum results
	var err error
	if *total != "" {
		sum, err = readRecord(*total, stdout)
	} else {
		sum, err = follow(stdin, stdout)
	}
	if err == nil && *record != "" {
		if err = appendRecord(*record, sum); err != nil {
			err = fmt.Errorf("recording results: %w", err)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "testsum: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(stdout, "%d passed, %d failed, %d skipped\n", sum.Passed, sum.Failed, sum.Skipped)
	if sum.Failed > 0 || sum.Passed == 0 {
		return exitFailed
	}
	return exitPassed
}

// follow prints a stream of events as it arrives and counts it.
func follow(in io.Reader, out io.Writer) (results, error) {
	c := newCounter(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if line := lines.Bytes(); len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil || e.Action == "" {
			fmt.Fprintln(out, lines.Text())
			continue
		}
		c.see(e)
	}
	if err := lines.Err(); err != nil {
		return results{}, fmt.Errorf("reading test events: %w", err)
	}
	return c.finish(), nil
}

// appendRecord appends one run to the record, as one line of JSON.
func appendRecord(name string, r results) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// maxSlow is how many slow tests are printed.
const maxSlow = 40

// showSlow prints the slowest tests first.
func showSlow(out io.Writer, all []slow) {
	slices.SortStableFunc(all, func(a, b slow) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Test, b.Test))
	})
	for _, one := range all[:min(maxSlow, len(all))] {
		fmt.Fprintf(out, "%7.1f s  %s\n", one.Seconds, one.Test)
	}
}

// readRecord prints the package lines of every recorded run, their slowest tests and why
// tests failed, and sums the counts.
func readRecord(name string, out io.Writer) (results, error) {
	file, err := os.Open(name)
	if err != nil {
		return results{}, fmt.Errorf("reading recorded results: %w", err)
	}
	defer file.Close()
	var sum results
	for d := json.NewDecoder(file); ; {
		var r results
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			showSlow(out, sum.Slow)
			showFailures(out, sum.Failures)
			return sum, nil
		} else if err != nil {
			return results{}, fmt.Errorf("reading recorded results: %w", err)
		}
		for _, line := range r.Packages {
			fmt.Fprintln(out, line)
		}
		sum.add(r)
	}
}
