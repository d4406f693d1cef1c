// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Output is -o of a command that prints a result.
type Output struct {
	// Format is the output format.
	Format ui.Format
}

// AddFlags adds -o.
func (o *Output) AddFlags(flags *pflag.FlagSet) {
	flags.StringVarP((*string)(&o.Format), "output", "o", "", "output format: json, yaml, name, wide, jsonpath=..., go-template=...")
}

// Listing has the flags of every listing.
type Listing struct {
	Output
	// NoHeaders omits the column headers.
	NoHeaders bool
	// SortBy is a column header or a JSONPath of an item.
	SortBy string
	// Selector is a label selector.
	Selector string
	// ShowLabels adds a column of labels.
	ShowLabels bool
	// Watch keeps the list up to date.
	Watch bool
	// All means all namespaces, or all clusters.
	All bool
}

// AddFlags adds the flags of a listing.
func (l *Listing) AddFlags(flags *pflag.FlagSet) {
	l.Output.AddFlags(flags)
	flags.BoolVar(&l.NoHeaders, "no-headers", false, "omit the column headers")
	flags.StringVar(&l.SortBy, "sort-by", "", "column header or JSONPath to sort by")
	flags.StringVarP(&l.Selector, "selector", "l", "", "label selector")
	flags.BoolVar(&l.ShowLabels, "show-labels", false, "add a column of labels")
	flags.BoolVarP(&l.Watch, "watch", "w", false, "keep the list up to date: in place on a terminal, else by printing changed rows")
	flags.BoolVarP(&l.All, "all-namespaces", "A", false, "all clusters")
}

// Check validates the flags.
func (l *Listing) Check() error {
	if err := l.Format.Check(); err != nil {
		return err
	}
	if l.Watch && l.Format.Machine() {
		return Usage("--watch prints a table and cannot be combined with -o "+string(l.Format), "leave one of them out")
	}
	return nil
}

// CheckSelector validates -l of a listing that selects the rows by their labels.
func (l *Listing) CheckSelector() error {
	if _, err := labels.Parse(l.Selector); err != nil {
		return Usage(fmt.Sprintf("wrong label selector %q", l.Selector), "for example -l env=prod")
	}
	return nil
}

// Change has the flags of every command that changes something.
type Change struct {
	Output
	// DryRun is none, client or server.
	DryRun string
	// Diff shows the difference instead of making the change.
	Diff bool
	// Wait makes the command wait for the result.
	Wait bool
	// Timeout limits the time of the whole command.
	Timeout time.Duration
	// Yes confirms a destructive command in advance.
	Yes bool
	// IgnoreNotFound treats objects that do not exist as deleted.
	IgnoreNotFound bool
}

// Parts selects the optional flags of Change. A command always has -o and, unless
// Compares is set, --dry-run.
type Parts struct {
	// Diff, Wait and Yes add the flag of that name; Wait also adds --timeout.
	Diff, Wait, Yes bool
	// WaitDefault is the default of --wait.
	WaitDefault bool
	// Compares leaves --dry-run out: the command changes nothing anyway.
	Compares bool
	// Deletes adds --ignore-not-found.
	Deletes bool
}

// AddFlags adds the flags.
func (c *Change) AddFlags(flags *pflag.FlagSet, parts Parts) {
	c.Output.AddFlags(flags)
	if c.DryRun = "none"; !parts.Compares {
		flags.StringVar(&c.DryRun, "dry-run", "none", "none; client: print what would be sent; server: have the API server validate it")
		flags.Lookup("dry-run").NoOptDefVal = "client"
	}
	if parts.Diff {
		flags.BoolVar(&c.Diff, "diff", false, "print the difference to the live objects and change nothing; exit code 0: same, 1: different, 2: error")
	}
	if parts.Wait {
		flags.BoolVar(&c.Wait, "wait", parts.WaitDefault, "wait for the result")
	}
	DurationVar(flags, &c.Timeout, "timeout", 5*time.Minute, "deadline of the whole command, for example 90s or 5m")
	if parts.Yes {
		flags.BoolVarP(&c.Yes, "yes", "y", false, "do not ask for confirmation")
	}
	if parts.Deletes {
		flags.BoolVar(&c.IgnoreNotFound, "ignore-not-found", false, "treat objects that do not exist as deleted")
	}
}

// Check validates the flags and replaces old spellings.
func (c *Change) Check(u *ui.UI) error {
	switch c.DryRun {
	case "none", "client", "server":
	case "true", "false":
		now := map[string]string{"true": "client", "false": "none"}[c.DryRun]
		u.Warn("--dry-run=%s is the old spelling of --dry-run=%s", c.DryRun, now)
		c.DryRun = now
	default:
		return Usage(fmt.Sprintf("wrong value %q for --dry-run", c.DryRun), "use none, client or server")
	}
	if c.Diff && c.DryRun != "none" {
		return Usage("--diff already changes nothing", "leave --dry-run out")
	}
	if c.Timeout <= 0 {
		return Usage("--timeout must be longer than 0", "for example --timeout 5m")
	}
	return c.Format.Check()
}

// Common returns the options that all functions of pkg/fleet share.
func (c *Change) Common(u *ui.UI, progress func(fleet.Step)) fleet.Common {
	dry := fleet.DryRun(c.DryRun)
	if c.DryRun == "none" {
		dry = fleet.DryRunNone
	}
	return fleet.Common{DryRun: dry, Diff: c.Diff, Wait: c.Wait, Timeout: c.Timeout, Progress: progress, Clock: u.Streams.Clock}
}

// Reads reports whether the command only reads: a diff or a dry run.
func (c *Change) Reads() bool { return c.Diff || (c.DryRun != "none" && c.DryRun != "false") }

// durationValue parses a duration. A bare integer means seconds, as scripts written
// for clusteradm expect.
type durationValue time.Duration

// Set parses s.
func (d *durationValue) Set(s string) error {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		*d = durationValue(time.Duration(n) * time.Second)
		return nil
	}
	v, err := time.ParseDuration(s)
	*d = durationValue(v)
	return err
}

// String returns the duration as Go formats it.
func (d *durationValue) String() string { return time.Duration(*d).String() }

// Type returns the type shown in help.
func (d *durationValue) Type() string { return "duration" }

// DurationVar adds a flag for a duration; a bare integer means seconds.
func DurationVar(flags *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	flags.Var((*durationValue)(d), name, usage)
}

// Hidden adds alias as a hidden spelling of the flag name.
func Hidden(flags *pflag.FlagSet, alias, name string) {
	f := *flags.Lookup(name)
	f.Name, f.Shorthand, f.Hidden = alias, "", true
	flags.AddFlag(&f)
}

// Waiting has --wait and --timeout for a command that changes nothing.
type Waiting struct {
	// Wait makes the command wait.
	Wait bool
	// Timeout limits the wait.
	Timeout time.Duration
}

// AddFlags adds the flags.
func (w *Waiting) AddFlags(flags *pflag.FlagSet, wait bool, usage string) {
	flags.BoolVar(&w.Wait, "wait", wait, usage)
	DurationVar(flags, &w.Timeout, "timeout", 5*time.Minute, "deadline of the whole command, for example 90s or 5m")
}
