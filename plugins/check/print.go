// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

func (o *Options) printCatalogue() error {
	u := o.f.UI
	if o.Format.Machine() {
		var names []string
		for _, c := range catalogue {
			names = append(names, c.Code)
		}
		return u.Result(o.Format, "CheckCodeList", catalogue, names)
	}
	t := ui.Table{Heads: []string{"CODE", "CHECK"}}
	for _, c := range catalogue {
		t.Rows = append(t.Rows, []string{c.Code, c.Title})
	}
	return u.Report(t, true)
}

// print prints the findings of each area, one per line, with cause and fix below
// each problem.
func (o *Options) print(report check.Report) error {
	u := o.f.UI
	if o.Format == sarif {
		return printSarif(u, report)
	}
	if o.Format.Machine() {
		var names []string
		report = worded(report)
		for _, area := range report.Areas {
			for _, f := range area.Findings {
				if f.Severity != check.SeverityOK {
					names = append(names, f.Code)
				}
			}
		}
		return u.Result(o.Format, "CheckReport", report, names)
	}
	for _, area := range report.Areas {
		o.printArea(area)
	}
	u.Say("%s: %d ok, %s, %s", ui.Many(report.OK+report.Warnings+report.Errors, "check"), report.OK,
		ui.Many(report.Warnings, "warning"), ui.Many(report.Errors, "error"))
	return nil
}

func (o *Options) printArea(area check.Area) {
	u := o.f.UI
	if o.Short && !slices.ContainsFunc(area.Findings, func(f check.Finding) bool { return f.Severity != check.SeverityOK }) {
		return
	}
	u.Say("%s", area.Name)
	for _, f := range area.Findings {
		switch {
		case f.Severity != check.SeverityOK:
			u.Say("  %s %s %s", u.Mark(states[f.Severity]), f.Code, f.Title)
		case o.Short:
			continue
		default:
			u.Say("  %s %s", u.Mark(fleet.Done), f.Title)
		}
		if f.Cause != "" {
			u.Say("      cause: %s", f.Cause)
		}
		if fix := ui.Fix(f.Fix); fix != "" {
			u.Say("      fix:   %s", u.Own(fix))
		}
	}
}

// states maps a severity to the state that has its mark.
var states = map[check.Severity]fleet.StepState{check.SeverityError: fleet.Broken, check.SeverityWarning: fleet.Warned}
