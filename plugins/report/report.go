// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/report"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Options are the flags of report.
type Options struct {
	options.Output
	// File is the page to write; empty writes it to stdout.
	File string

	f *options.Factory
}

// New returns the command "report".
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	cmd := &cobra.Command{
		Use: "report", Short: "Write the state of the fleet as a page to read in a browser", Args: options.Args(0, 0, "report"),
		Long: options.Long(`
		Write one page of HTML about the hub of --context: its clusters, placements, works and
		add-ons, each with a plot of their states, and what "check" finds. The page loads nothing
		and needs no script, so it can be sent and kept as a file. It can be read without colour
		and by a screen reader. What looks like a credential is left out. An existing file is not
		overwritten.`),
		Example: options.Example(`
		kubectl ocm report -f fleet.html --context hub
		kubectl ocm report --context hub > fleet.html
		kubectl ocm report -o json --context hub`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.Do(cmd, o.check, o.Run)
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&o.File, "filename", "f", "", "write the page to this new file instead of stdout")
	return cmd
}

// check validates the flags.
func (o *Options) check() error {
	if o.File != "" && o.Format.Machine() {
		return options.Usage("-f writes a page, and -o "+string(o.Format)+" prints data", "leave one of them out")
	}
	return o.Format.Check()
}

// Run reads the fleet and writes the page.
func (o *Options) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	found, err := report.Read(ctx, report.Options{Common: fleet.Common{Clock: u.Streams.Clock}, Hub: hub, Version: version.Get(), ContextOf: o.f.ContextOf})
	if err != nil {
		return err
	}
	for _, area := range found.Check.Areas {
		for i := range area.Findings {
			if text := ui.Fix(area.Findings[i].Fix); text != "" {
				area.Findings[i].Fix = fleet.Advice(u.Own(text))
			} else {
				area.Findings[i].Fix = nil
			}
		}
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "FleetReport", found, nil)
	}
	var page bytes.Buffer
	if err := write(&page, found); err != nil {
		return fleet.Fail("writing the page", err, nil)
	}
	if o.File == "" {
		_, err := page.WriteTo(u.Streams.Out)
		return err
	}
	return o.save(page.Bytes())
}

// save writes the page to the file, which must not exist: only its owner can read it, because the
// page names everything that is in the fleet.
func (o *Options) save(page []byte) error {
	file, err := os.OpenFile(o.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fleet.Refuse(o.File+" exists", "a report overwrites nothing", fleet.Advice("name another file, or rm "+ui.ShellWord(o.File)))
	}
	if err != nil {
		return fleet.Fail("creating "+o.File, err, nil)
	}
	_, err = file.Write(page)
	if err = cmp.Or(err, file.Close()); err != nil {
		_ = os.Remove(o.File)
		return fleet.Fail("writing "+o.File, err, nil)
	}
	o.f.UI.Note("%s: %d KiB", o.File, (len(page)+1023)/1024)
	return nil
}
