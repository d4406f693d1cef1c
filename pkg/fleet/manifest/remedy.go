// SPDX-License-Identifier: Apache-2.0

package manifest

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with manifests.
const (
	// BuildKustomization builds it as kubectl does, which says more.
	BuildKustomization fleet.RemedyCode = "manifest.BuildKustomization"
	// GiveNamespace gives an object a namespace, or one to all of them.
	GiveNamespace fleet.RemedyCode = "manifest.GiveNamespace"
	// NameFiles names files with manifests.
	NameFiles fleet.RemedyCode = "manifest.NameFiles"
)
