// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// older is a command of clusteradm, the older CLI, and ours in its place.
type older struct {
	old, now string
	// flags maps a flag to ours, to "" if we always do what it says, to argument if its
	// values are arguments here, or to last if its value is the words of another program.
	flags map[string]string
}

const (
	argument = "NAME"
	last     = "-- WORDS"
)

// formerly are the commands whose names or flags differ from ours.
var formerly = []older{
	{"init", "hub init", map[string]string{"--create-namespace": "", "--force": ""}},
	{"clean", "hub clean", map[string]string{"--purge-operator": ""}},
	{"get token", "hub token create", nil},
	{"delete token", "hub token revoke", nil},
	{"get hub-info", "hub status", nil},
	{"get klusterlet-info", "check spoke", nil},
	{"get clusters", "cluster list", nil},
	{"clusters", "cluster list", nil},
	{"get clustersets", "clusterset list", nil},
	{"create clusterset", "clusterset create", nil},
	{"delete clusterset", "clusterset delete", nil},
	{"clusterset set", "clusterset add --move", nil},
	{"get placements", "placement list", nil},
	{"create placement", "placement create", nil},
	{"get works", "work list", nil},
	{"create work", "work apply", map[string]string{"--overwrite": "", "--replicaset": "", "-r": ""}},
	{"delete work", "work delete", nil},
	{"get addons", "addon list", nil},
	{"get addon", "addon list", nil},
	{"upgrade clustermanager", "hub upgrade", map[string]string{"--bundle-version": "--version"}},
	{"upgrade klusterlet", "join --upgrade", map[string]string{"--bundle-version": "--version"}},
	{"addon create", "addon create", map[string]string{"--hub-registration": "--registration=csr"}},
	{"addon enable", "addon enable", map[string]string{"--names": argument}},
	{"addon disable", "addon disable", map[string]string{"--names": argument}},
	{"accept", "accept", map[string]string{"--clusters": argument}},
	{"join", "join", map[string]string{"--cluster-name": argument}},
	{"proxy kubectl", "proxy kubectl", map[string]string{"--args": last, "--sa": "--as-sa"}},
	{"unjoin", "unjoin", map[string]string{"--cluster-name": argument, "--purge-operator": ""}},
}

// elsewhere are the commands of the older CLI that have no single command in their place, and
// what to do instead.
var elsewhere = []struct{ old, advice string }{
	{"install hub-addon", "install the add-on as its own documentation says, for example with helm; then kubectl ocm addon enable"},
	{"uninstall hub-addon", "kubectl ocm addon delete <name>      and remove the rest as the add-on's own documentation says"},
	{"create sampleapp", "kubectl ocm work apply <name> -f FOLDER --placement NAMESPACE/NAME"},
	{"config", "kubectl config"},
	{"plugin", "kubectl plugin list"},
}

// alone are the flags of every command that have no value.
var alone = []string{"-q", "--quiet", "--insecure-skip-tls-verify", "-h", "--help"}

// lead counts the words before the command: flags of every command, and their values.
func lead(words []string) int {
	n := 0
	for n < len(words) && strings.HasPrefix(words[n], "-") {
		if n++; !strings.Contains(words[n-1], "=") && !slices.Contains(alone, words[n-1]) {
			n++
		}
	}
	return min(n, len(words))
}

// begins reports whether a command line begins with the words of the command. A single word
// that is not the name of our command must be all there is before the flags, because our
// commands may begin with it.
func (f older) begins(words []string) bool {
	parts := strings.Fields(f.old)
	if len(words) < len(parts) || !slices.Equal(words[:len(parts)], parts) {
		return false
	}
	return len(parts) > 1 || f.old == f.now || len(words) == 1 || strings.HasPrefix(words[1], "-")
}

// translate replaces a command line of the older CLI by ours, and returns the note to print
// about it; "" if it is ours already.
func translate(words []string) (now []string, note string) {
	n := lead(words)
	for _, f := range formerly {
		if !f.begins(words[n:]) {
			continue
		}
		t := translation{of: f}
		t.take(words[n+len(strings.Fields(f.old)):])
		if f.old == f.now && t.theirs == "" {
			return words, ""
		}
		return slices.Concat(words[:n], strings.Fields(f.now), t.words), fmt.Sprintf("note: %q is now %q", f.old+t.theirs, "kubectl ocm "+f.now+t.ours)
	}
	return words, ""
}

// translation is what follows a command, with our flags.
type translation struct {
	of    older
	words []string
	// theirs are the flags that were replaced, ours those in their place.
	theirs, ours string
	// last are words that come after all others.
	last []string
}

// take translates the words after the command.
func (t *translation) take(words []string) {
	for len(words) > 0 && words[0] != "--" {
		words = words[t.one(words):]
	}
	if t.words = append(t.words, words...); len(t.last) > 0 {
		t.words = append(append(t.words, "--"), t.last...)
	}
}

// one translates one flag or argument, and returns how many words it has. An output format that
// is the default here is left out.
func (t *translation) one(words []string) int {
	name, value, with := strings.Cut(words[0], "=")
	length := 1
	if !with && len(words) > 1 {
		value, length = words[1], 2
	}
	now, known := t.of.flags[name]
	switch {
	case isDefaultOutput(name, value):
		return length
	case !known || with && !t.translates(now, value):
		t.words = append(t.words, words[0])
		return 1
	case now == last:
		t.last = strings.Fields(value)
	case now == argument:
		t.words = append(t.words, strings.Split(value, ",")...)
	case with && now != "" && !strings.Contains(now, "="):
		t.words = append(t.words, now+"="+value)
	default:
		length = 1
		t.words = append(t.words, strings.Fields(now)...)
	}
	t.theirs += " " + name
	if now != "" {
		t.ours += " " + now
	}
	return length
}

// isDefaultOutput reports whether a flag asks for what is printed anyway.
func isDefaultOutput(flag, value string) bool {
	return (flag == "-o" || flag == "--output") && slices.Contains([]string{"table", "tree", "text"}, value)
}

// translates reports whether a flag that is now spelled as given may have the value after "=": one
// that switches something on takes only true.
func (*translation) translates(now, value string) bool {
	return value != "false" && (value == "true" || !strings.Contains(now, "="))
}

// moved are hidden commands that say where a command of the older CLI has gone.
func moved() []*cobra.Command {
	groups := map[string]*cobra.Command{}
	var out []*cobra.Command
	for _, e := range elsewhere {
		first, second, _ := strings.Cut(e.old, " ")
		if groups[first] == nil {
			groups[first] = options.Group(&cobra.Command{Use: first, Hidden: true})
			out = append(out, groups[first])
		}
		gone := func(*cobra.Command, []string) error {
			return &fleet.Error{Kind: fleet.Usage, Message: fmt.Sprintf("there is no command %q here", e.old), Fix: fleet.Advice(e.advice)}
		}
		if second == "" {
			groups[first].RunE, groups[first].DisableFlagParsing = gone, true
			continue
		}
		groups[first].AddCommand(&cobra.Command{Use: second, Hidden: true, RunE: gone, DisableFlagParsing: true})
	}
	return out
}
