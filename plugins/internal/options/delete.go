// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Tolerates tells that an error only says that a name is the name of nothing, and that
// this was to be ignored.
func (c *Change) Tolerates(err error) bool {
	return c.IgnoreNotFound && errors.Is(err, naming.ErrNotFound)
}

// Absent is the error about the first object that a deletion did not find; nil when all
// were there, or when that was to be ignored.
func (c *Change) Absent(changes []fleet.Change, no func(fleet.Change) *fleet.Error) error {
	if i := slices.IndexFunc(changes, missed); i >= 0 && !c.IgnoreNotFound {
		return no(changes[i])
	}
	return nil
}

// Deleted prints what a deletion did, and fails for what was not there.
func (c *Change) Deleted(u *ui.UI, kind string, changes []fleet.Change, no func(fleet.Change) *fleet.Error) error {
	absent := c.Absent(changes, no)
	if absent != nil {
		changes = slices.DeleteFunc(slices.Clone(changes), missed)
	}
	if absent == nil || len(changes) > 0 {
		if err := c.Finish(u, kind, changes); err != nil {
			return err
		}
	}
	return absent
}

// missed tells that there was nothing to delete.
func missed(c fleet.Change) bool { return c.Action == fleet.Unchanged }
