// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// lookAgain is the pause between two looks of a wait.
const lookAgain = 2 * time.Second

// Await repeats look until it finds nothing at or above a severity, or the time of the options is
// over, and returns the last whole report. A server that does not answer is waited for, too; a
// wrong request ends the wait.
func Await(ctx context.Context, o fleet.Common, failOn Severity, look func(context.Context) (Report, error)) (Report, error) {
	limited, cancel, r := o.Begin(ctx)
	defer cancel()
	r.Step("check")
	var last Report
	var failed error
	looked := false
	err := await.True(limited, o.Clock, lookAgain, func(within context.Context) (bool, error) {
		if !looked {
			within = ctx // the first look is finished, however short the time is
		}
		report, err := look(within)
		var e *fleet.Error
		switch {
		case looked && within.Err() != nil:
			return false, nil //nolint:nilerr // the time is over, and the last whole report counts
		case errors.As(err, &e) && e.Kind == fleet.Usage, ctx.Err() != nil:
			failed = cmp.Or(ctx.Err(), err)
			return true, nil //nolint:nilerr // it ends the wait, and is reported below
		}
		looked = true
		last, failed = report, err
		switch f := report.worst(failOn); {
		case err != nil:
			r.Detail(err.Error())
		case f.Code == "":
			return true, nil
		default:
			r.Detail(fmt.Sprintf("%s, %s: %s %s", fleet.Many(report.Errors, "error"), fleet.Many(report.Warnings, "warning"), f.Code, f.Title))
		}
		return false, nil
	})
	switch f := last.worst(failOn); {
	case err == nil && failed == nil:
		r.Done(fmt.Sprintf("%d ok", last.OK))
		return last, nil
	case err == nil:
		return last, r.Fail(failed)
	case failed != nil:
		return last, r.Fail(r.Expired(err, "the cluster to answer", fleet.OneLine(failed.Error()), nil))
	default:
		return last, r.Fail(r.Expired(err, "nothing to be wrong", strings.TrimSpace(f.Code+" "+f.Title), f.Fix))
	}
}

// worst returns the first finding of the highest severity that is at or above one; a zero finding
// for none.
func (r *Report) worst(failOn Severity) Finding {
	var out Finding
	for _, area := range r.Areas {
		for _, f := range area.Findings {
			if f.Severity == SeverityError {
				return f
			}
			if f.Severity == SeverityWarning && failOn == SeverityWarning && out.Code == "" {
				out = f
			}
		}
	}
	return out
}

// Fails reports whether anything was found at or above a severity.
func (r *Report) Fails(on Severity) bool { return r.worst(on).Code != "" }
