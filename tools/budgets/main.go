// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const (
	exitWithin  = 0
	exitBroken  = 1
	exitUnknown = 2
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program: it measures the tree that the arguments name and returns the
// exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("budgets", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "folder of the checkout")
	bin := flags.String("bin", "", "folder with the built binaries; their sizes are not measured when empty")
	update := flags.Bool("update", false, "rewrite the dependency lists instead of comparing them")
	all := flags.Bool("all", false, "also print findings of figures that are within their budget")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitWithin
		}
		return exitUnknown
	}
	figures, err := measure(ctx, config{Root: *root, Bin: *bin, Update: *update})
	within := report(stdout, figures, *all)
	if err != nil {
		fmt.Fprintf(stderr, "budgets: %v\n", err)
		return exitUnknown
	}
	if !within {
		return exitBroken
	}
	return exitWithin
}

// config selects what to measure.
type config struct {
	Root   string
	Bin    string
	Update bool
}

// measure computes every figure of the tree, in the order of the report. With an error it
// also returns the figures that could be measured.
func measure(ctx context.Context, c config) ([]figure, error) {
	t, err := load(c.Root)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		packageComments(t),
		exportedComments(t),
		fieldComments(t),
		longestFunction(t),
		functionPercentile(t),
		parameters(t),
		fileLength(t),
		duplication(t),
		commandLines(t),
		licenceHeaders(t),
		packageNames(t),
		packageDepth(t),
		packageFiles(t),
		citations(t),
		unusedExports(t),
	}
	figures = append(figures, subjects(ctx, c.Root, subjectsSince))
	var problems []error
	add := func(f figure, err error) {
		if err != nil {
			problems = append(problems, err)
			return
		}
		figures = append(figures, f)
	}
	add(forbiddenImports(ctx, c.Root, importRules))
	for _, b := range binaries {
		add(dependencies(ctx, c, b))
		if c.Bin != "" {
			add(binarySize(c.Bin, b))
		}
	}
	return figures, errors.Join(problems...)
}
