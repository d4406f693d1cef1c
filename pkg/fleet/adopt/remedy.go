// SPDX-License-Identifier: Apache-2.0

package adopt

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for hubs that are taken over or given back.
const (
	// Install installs a hub where there is none.
	Install fleet.RemedyCode = "adopt.Install"
	// Compact changes a hub of ours to the compact layout.
	Compact fleet.RemedyCode = "adopt.Compact"
	// RemoveCSV removes the operator from the Operator Lifecycle Manager, which keeps the hub.
	RemoveCSV fleet.RemedyCode = "adopt.RemoveCSV"
)
