// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

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
