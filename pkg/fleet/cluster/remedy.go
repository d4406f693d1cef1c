// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with clusters that are named.
const (
	// NameSome names clusters, in one of the ways there are.
	NameSome fleet.RemedyCode = "cluster.NameSome"
	// ExampleSelector shows a selector as it can be.
	ExampleSelector fleet.RemedyCode = "cluster.ExampleSelector"
)
