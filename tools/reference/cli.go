// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documented returns the commands below c that users should know.
func documented(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() })
}

// commandIndex renders a table for each group of commands, with links to their
// pages.
func commandIndex(root *cobra.Command) string {
	var out strings.Builder
	for _, group := range root.Groups() {
		var rows [][]string
		for _, c := range documented(root) {
			if c.GroupID == group.ID {
				rows = append(rows, []string{fmt.Sprintf("[%s](%s.md)", c.CommandPath(), c.Name()), sentence(c.Short)})
				rows = append(rows, children(c, c.Name()+".md")...)
			}
		}
		fmt.Fprintf(&out, "### %s\n\n%s\n", strings.TrimSuffix(group.Title, ":"), table([]string{"command", "what it does"}, rows))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// children returns the commands below c with links into a page.
func children(c *cobra.Command, page string) [][]string {
	var rows [][]string
	for _, c := range documented(c) {
		rows = append(rows, []string{fmt.Sprintf("[%s](%s#%s)", c.CommandPath(), page, anchor(c)), sentence(c.Short)})
		rows = append(rows, children(c, page)...)
	}
	return rows
}

// anchor returns the name by which Markdown links to the heading of a command.
func anchor(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// commandPage renders a command with all commands below it.
func commandPage(c *cobra.Command) string {
	var out strings.Builder
	out.WriteString("<!-- Written by \"make generate\" from the commands; changes here are lost. -->\n\n")
	section(&out, c, "#")
	out.WriteString("The [flags that every command has](README.md#flags-that-every-command-has) and the\n" +
		"[exit codes](README.md#exit-codes) are on the page of all commands.\n")
	return out.String()
}

func section(out *strings.Builder, c *cobra.Command, heading string) {
	fmt.Fprintf(out, "%s %s\n\n", heading, c.CommandPath())
	if c.Long == "" {
		out.WriteString(sentence(c.Short) + "\n\n")
	} else {
		out.WriteString(description(c.Long) + "\n\n")
	}
	if rows := children(c, ""); len(rows) > 0 && heading == "#" {
		out.WriteString(table([]string{"command", "what it does"}, rows) + "\n")
	}
	if !c.HasAvailableSubCommands() || c.LocalNonPersistentFlags().HasAvailableFlags() {
		fmt.Fprintf(out, "```\n%s\n```\n\n", c.UseLine())
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(out, "Also called %s.\n\n", code(strings.Join(c.Aliases, "`, `")))
	}
	if c.Example != "" {
		fmt.Fprintf(out, "Examples:\n\n```\n%s\n```\n\n", unindent(c.Example))
	}
	if flags := flagTable(c.LocalFlags()); flags != "" {
		out.WriteString(flags + "\n")
	}
	for _, c := range documented(c) {
		section(out, c, "##")
	}
}

// flagTable renders the flags of a set, except hidden ones and --help.
func flagTable(flags *pflag.FlagSet) string {
	var rows [][]string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if value != "" {
			name += " " + value
		}
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" {
			name = fmt.Sprintf("--%s[=%s]", f.Name, f.NoOptDefVal)
		}
		name = code(name)
		if f.Shorthand != "" {
			name = code("-"+f.Shorthand) + ", " + name
		}
		value = f.DefValue
		if slices.Contains([]string{"false", "[]", "0"}, value) {
			value = ""
		}
		rows = append(rows, []string{name, code(value), prose(usage)})
	})
	if len(rows) == 0 {
		return ""
	}
	return table([]string{"flag", "default", "meaning"}, rows)
}

// quoted and flagged find command lines and flags in a help text.
var (
	quoted  = regexp.MustCompile(`"(kubectl [^"]*)"`)
	flagged = regexp.MustCompile(`(^|[\s(])(--?[a-zA-Z][a-z-]*)`)
)

// description converts a help text to Markdown.
func description(text string) string {
	parts := quoted.Split(text, -1)
	for i, p := range parts {
		parts[i] = flagged.ReplaceAllString(prose(p), "$1`$2`")
	}
	var out strings.Builder
	for i, m := range append(quoted.FindAllStringSubmatch(text, -1), nil) {
		out.WriteString(parts[i])
		if m != nil {
			out.WriteString(code(m[1]))
		}
	}
	return out.String()
}

// sentence ends a text with a full stop.
func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }

func unindent(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n  ", "\n"), "  ")
}
