// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
)

// Usage returns the error for a wrong command line.
func Usage(message, fix string) error {
	return &fleet.Error{Kind: fleet.Usage, Message: message, Fix: fleet.Advice(fix)}
}

// Args allows between min and max positional arguments; max < 0 means no limit.
// Errors call an argument what.
func Args(min, max int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < min:
			return Usage(fmt.Sprintf("%s is missing", what), helpOf(cmd))
		case max == 0 && len(args) > 0:
			return Usage(fmt.Sprintf("unexpected argument %q", args[0]), helpOf(cmd))
		case max >= 0 && len(args) > max:
			return Usage(fmt.Sprintf("unexpected argument %q after %s", args[max], what), helpOf(cmd))
		}
		return nil
	}
}

func helpOf(cmd *cobra.Command) string { return cmd.CommandPath() + " --help" }

// Group makes cmd a command that only holds subcommands: without arguments it shows its
// help, and an unknown subcommand is an error that suggests the nearest one.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	e := &fleet.Error{Kind: fleet.Usage, Message: fmt.Sprintf("unknown command %q for %q", word, cmd.CommandPath()), Fix: fleet.Advice(helpOf(cmd))}
	if near := naming.Nearest(word, names); near != "" {
		e.Cause, e.Fix = fmt.Sprintf("did you mean %q?", near), fleet.Advice(cmd.CommandPath()+" "+near)
	}
	return e
}

// Long removes the indentation of a help text.
func Long(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "\t\t")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\t\n ")
}

// Example indents examples for the help text.
func Example(text string) string {
	lines := strings.Split(Long(text), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}
