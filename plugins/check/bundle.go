// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/bundle"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// createBundle creates the file of --bundle, which must not exist: nil without the flag.
func (o *Options) createBundle() (*os.File, error) {
	if o.Bundle == "" || o.List || o.Explain != "" {
		return nil, nil
	}
	file, err := os.OpenFile(o.Bundle, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fleet.Refuse(o.Bundle+" exists", "a bundle overwrites nothing", fleet.Advice("name another file, or rm "+ui.ShellWord(o.Bundle)))
	}
	if err != nil {
		return nil, fleet.Fail("creating "+o.Bundle, err, nil)
	}
	return file, nil
}

// writeBundle writes the bundle and says what is in it. What is not whole is removed.
func (o *Options) writeBundle(ctx context.Context, file *os.File, report check.Report) (err error) {
	if file == nil {
		return nil
	}
	defer func() {
		if err = cmp.Or(err, file.Close()); err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	wanted, err := o.connect(ctx)
	if err != nil {
		return err
	}
	files, err := bundle.Write(ctx, file, bundle.Options{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Hub: wanted.Hub, Spoke: wanted.Spoke,
		Version: version.Get(), Report: worded(report)})
	if err != nil {
		return fmt.Errorf("writing %s: %w", file.Name(), err)
	}
	size := ""
	if info, err := file.Stat(); err == nil {
		size = fmt.Sprintf(", %d KiB", (info.Size()+1023)/1024)
	}
	u := o.f.UI
	u.Note("%s: %s%s; secrets, values, manifests and annotations are left out", file.Name(), ui.Many(len(files), "file"), size)
	for _, f := range files {
		line := fmt.Sprintf("  %-60s %s", f.Name, ui.Many(f.Objects, "object"))
		switch {
		case !strings.Contains(f.Name, "/"):
			line = "  " + f.Name // about the archive or both clusters
		case f.Failure != "":
			line += ", not read: " + f.Failure
		case f.Omitted > 0:
			line += fmt.Sprintf(", %d more are left out", f.Omitted)
		}
		u.Note("%s", line)
	}
	return nil
}

// worded returns the report with its fixes as text, and the report itself as it was.
func worded(report check.Report) check.Report {
	out := report
	out.Areas = make([]check.Area, len(report.Areas))
	for i, area := range report.Areas {
		out.Areas[i] = check.Area{Name: area.Name, Findings: make([]check.Finding, len(area.Findings))}
		for j, f := range area.Findings {
			if text := ui.Fix(f.Fix); text != "" {
				f.Fix = fleet.Advice(text)
			} else {
				f.Fix = nil
			}
			out.Areas[i].Findings[j] = f
		}
	}
	return out
}
