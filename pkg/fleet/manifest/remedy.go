// SPDX-License-Identifier: Apache-2.0

package manifest

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for manifests.
const (
	// BuildKustomization builds it with kubectl, which reports more.
	BuildKustomization fleet.RemedyCode = "manifest.BuildKustomization"
	// GiveNamespace sets the namespace of one object, or of all.
	GiveNamespace fleet.RemedyCode = "manifest.GiveNamespace"
	// NameFiles names files with manifests.
	NameFiles fleet.RemedyCode = "manifest.NameFiles"
)
