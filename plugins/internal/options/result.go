// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"errors"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Ask asks for confirmation of what would be lost on the hub, unless that is nothing.
func (c *Change) Ask(u *ui.UI, hub *fleet.Cluster, question string, losses []string) error {
	if len(losses) == 0 {
		return nil
	}
	return u.Confirm(c.Yes, question, append([]string{"hub: " + hub.String()}, losses...))
}

// Printed prints the result of a dry run or diff, or in a format for programs, and reports
// whether it did, so that there is nothing to tell a person.
func (c *Change) Printed(u *ui.UI, kind string, value any, changes []fleet.Change) (bool, error) {
	if done, err := c.Preview(u, kind, value, changes); done || err != nil || !c.Format.Machine() {
		return done, err
	}
	return true, u.Result(c.Format, kind, value, fleet.Names(changes))
}

// Finish prints what a command changed, one line per object.
func (c *Change) Finish(u *ui.UI, kind string, changes []fleet.Change) error {
	value := struct {
		Items []fleet.Change `json:"items"`
	}{changes}
	if done, err := c.Printed(u, kind, value, changes); done || err != nil {
		return err
	}
	for _, change := range changes {
		u.Say("%s %s", change.Name(), change.Action)
	}
	return nil
}

// FinishSome is Finish for a command that may have failed after some of its changes.
func (c *Change) FinishSome(u *ui.UI, kind string, changes []fleet.Change, failure error) error {
	if failure != nil && len(changes) == 0 {
		return failure
	}
	return cmp.Or(c.Finish(u, kind, changes), failure)
}

// Clusters prints what a command did on each cluster: one line per cluster, or a table
// if some failed. line describes what was done on one of them. It returns the failure.
func (c *Change) Clusters(u *ui.UI, kind string, result fleet.ClusterChanges, failure error, line func(fleet.ClusterChange) string) error {
	if failure == nil {
		if done, err := c.Printed(u, kind, result, result.Items); done || err != nil {
			return err
		}
	}
	switch {
	case failure != nil && len(result.Clusters) == 0:
		return failure
	case c.Format.Machine():
		return cmp.Or(u.Result(c.Format, kind, result, fleet.Names(result.Items)), failure)
	case failure != nil && len(result.Clusters) > 1:
		t := ui.Table{Heads: []string{"CLUSTER", "RESULT", "MESSAGE"}}
		for _, d := range result.Clusters {
			action := string(d.Action)
			if d.Failure != "" {
				action = "failed"
			}
			t.Rows = append(t.Rows, []string{d.Cluster, action, ui.Dash(d.Failure)})
		}
		return cmp.Or(u.Report(t, c.Format == ui.Wide), failure)
	}
	for _, d := range result.Clusters {
		if d.Failure == "" && d.Object != nil {
			u.Say("%s", line(d))
		}
	}
	return failure
}

// Tolerates reports whether err only means that an object was not found, and
// --ignore-not-found is set.
func (c *Change) Tolerates(err error) bool {
	return c.IgnoreNotFound && errors.Is(err, naming.ErrNotFound)
}

// Absent returns the error about the first object that a deletion did not find; nil if
// all were found, or --ignore-not-found is set.
func (c *Change) Absent(changes []fleet.Change, notFound func(fleet.Change) *fleet.Error) error {
	if i := slices.IndexFunc(changes, isUnchanged); i >= 0 && !c.IgnoreNotFound {
		return notFound(changes[i])
	}
	return nil
}

// Deleted prints what a deletion did, and returns an error for an object that was not found.
func (c *Change) Deleted(u *ui.UI, kind string, changes []fleet.Change, notFound func(fleet.Change) *fleet.Error) error {
	absent := c.Absent(changes, notFound)
	if absent != nil {
		changes = slices.DeleteFunc(slices.Clone(changes), isUnchanged)
	}
	if absent == nil || len(changes) > 0 {
		if err := c.Finish(u, kind, changes); err != nil {
			return err
		}
	}
	return absent
}

// isUnchanged reports whether there was nothing to delete.
func isUnchanged(c fleet.Change) bool { return c.Action == fleet.Unchanged }
