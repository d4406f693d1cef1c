// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// accounts returns the write that creates the API of ManagedServiceAccounts that the gate
// needs, if it is missing. Charts of the add-on install the API, too, so it is never changed
// or removed: a removal would delete the identities that programs use.
func accounts(s State, f Features) []reconcile.Write {
	if !f.ManagedServiceAccount || s.Accounts.Found {
		return nil
	}
	definition, err := crd.Get(crd.ManagedServiceAccounts)
	if err != nil {
		// Only a broken build has no definition.
		return nil
	}
	return []reconcile.Write{reconcile.Create{Object: definition, Lenient: true}}
}
