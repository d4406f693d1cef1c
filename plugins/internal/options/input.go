// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// maxValue is the maximum size of a value on the command line, in bytes. Anything longer belongs
// into a file.
const maxValue = 16 << 10

// freeText are the flags whose values may have several lines.
var freeText = []string{"cel", "description", "output"}

// nameFlags are the flags whose values are names of objects, or NAMESPACE/NAME.
var nameFlags = []string{"cluster", "clusters", "cluster-name", "clusterset", "clustersets", "install-namespace", "klusterlet", "name",
	"names", "namespace", "placement", "placement-ref", "render", "without"}

// CheckInput refuses what no flag and no argument of a command can mean: an empty value, a huge one,
// several lines, control characters, and names that are paths. It runs before the command does
// anything. words are what was typed, args the arguments among them.
func CheckInput(cmd *cobra.Command, args, words []string) error {
	if cmd.DisableFlagParsing || strings.Contains(cmd.Use, " WORDS") {
		args, words = nil, nil // they are for another program
	}
	if err := checkWords(cmd, words); err != nil {
		return err
	}
	var found error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if found == nil {
			found = cmp.Or(checkFlag(cmd, f), checkApart(cmd, f))
		}
	})
	if found != nil {
		return found
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash] // what follows is for another program
	}
	file := strings.Contains(cmd.Use, " FILE")
	for _, arg := range args {
		what := fmt.Sprintf("argument %q", shown(arg))
		if arg == "" {
			return Usage("an argument is empty", helpOf(cmd))
		}
		if err := checkText(what, arg, false); err != nil {
			return err
		}
		if err := checkName(what, arg); err != nil && !file {
			return err
		}
	}
	return nil
}

// apartAnnotation holds, on a flag, the names of those that contradict it.
const apartAnnotation = "kubectl-ocm/apart"

// Apart makes CheckInput refuse a flag together with any of the others, which would have no effect
// beside it.
func Apart(flags *pflag.FlagSet, name string, others ...string) {
	f := flags.Lookup(name)
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[apartAnnotation] = append(f.Annotations[apartAnnotation], others...)
}

// checkApart refuses what contradicts the flag f, which was given.
func checkApart(cmd *cobra.Command, f *pflag.Flag) error {
	for _, other := range f.Annotations[apartAnnotation] {
		if cmd.Flags().Changed(other) {
			return Usage("--"+f.Name+" and --"+other+" are both given", "leave one of them out")
		}
	}
	return nil
}

// checkWords judges the values as they were typed: of a list, the parser drops an empty one, and all
// lines but the first.
func checkWords(cmd *cobra.Command, words []string) error {
	for _, t := range typedValues(cmd, words) {
		what, lines := fmt.Sprintf("argument %q", shown(t.value)), false
		if t.flag != nil {
			what, lines = "the value of --"+t.flag.Name, slices.Contains(freeText, t.flag.Name)
			if t.value == "" && isOwn(cmd, t.flag) {
				return noValue(t.flag)
			}
		}
		if !lines && strings.ContainsAny(t.value, "\n\r") {
			return Usage(what+" has several lines", "give one line")
		}
	}
	return nil
}

func noValue(f *pflag.Flag) error {
	return Usage("--"+f.Name+" has an empty value", "give a value, or leave --"+f.Name+" out")
}

// typedValue is a value as it was typed; flag is nil for an argument.
type typedValue struct {
	flag  *pflag.Flag
	value string
}

// typedValues returns the values among words, which are a whole command line.
func typedValues(cmd *cobra.Command, words []string) []typedValue {
	var out []typedValue
	var before *pflag.Flag // it has no value yet
	for _, word := range words {
		if word == "--" && before == nil {
			break
		}
		if before != nil || !strings.HasPrefix(word, "-") {
			out, before = append(out, typedValue{before, word}), nil
			continue
		}
		name, value, given := strings.Cut(word, "=")
		switch f := flagOf(cmd, name); {
		case f != nil && given:
			out = append(out, typedValue{f, value})
		case f != nil && f.NoOptDefVal == "":
			before = f
		}
	}
	return out
}

// flagOf returns the flag that is spelled so, nil if the command has none.
func flagOf(cmd *cobra.Command, spelled string) *pflag.Flag {
	switch name := strings.TrimPrefix(spelled, "--"); {
	case name != spelled:
		return cmd.Flags().Lookup(name)
	case len(spelled) == len("-x"):
		return cmd.Flags().ShorthandLookup(spelled[1:])
	}
	return nil
}

// isOwn reports whether a flag takes text and is not one of all commands, where kubectl takes an
// empty value for none.
func isOwn(cmd *cobra.Command, f *pflag.Flag) bool {
	return cmd.InheritedFlags().Lookup(f.Name) == nil && strings.HasPrefix(f.Value.Type(), "string")
}

func checkFlag(cmd *cobra.Command, f *pflag.Flag) error {
	name := "--" + f.Name
	all := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		all = list.GetSlice()
	}
	if isOwn(cmd, f) && slices.Contains(all, "") {
		return noValue(f)
	}
	for _, value := range all {
		if err := checkText("the value of "+name, value, slices.Contains(freeText, f.Name)); err != nil {
			return err
		}
		if value == "" || !slices.Contains(nameFlags, f.Name) {
			continue
		}
		if err := checkName(fmt.Sprintf("%s %q", name, shown(value)), value); err != nil {
			return err
		}
	}
	return nil
}

// checkText refuses text that is huge or has control characters. what begins the message.
func checkText(what, text string, lines bool) error {
	if len(text) > maxValue {
		return &fleet.Error{Kind: fleet.Usage, Message: fmt.Sprintf("%s is %d bytes long", what, len(text)),
			Cause: fmt.Sprintf("more than %d are never needed", maxValue), Fix: fleet.Advice("give a shorter one")}
	}
	control := func(r rune) bool { return unicode.IsControl(r) && (!lines || r != '\n' && r != '\t' && r != '\r') }
	if i := strings.IndexFunc(text, control); i >= 0 {
		r := []rune(text[i:])[0]
		return Usage(fmt.Sprintf("%s has a control character, %U", what, r), "type it again without that character")
	}
	return nil
}

// checkName refuses a name that an address would not take as one.
func checkName(what, name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return &fleet.Error{Kind: fleet.Usage, Message: what + " is not a name",
				Cause: `no part of a name is empty, "." or ".."`, Fix: fleet.Advice("give the name as a listing shows it")}
		}
	}
	return nil
}

// shown returns the start of a value, for messages.
func shown(value string) string {
	const most = 60
	if len(value) > most {
		return value[:most] + "..."
	}
	return value
}
