// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Validate says what is wrong or without effect in a Placement, for admission
// and the plugin. It finds what the schema of the API does not, and what it does
// for objects that never saw it. What Decide calls misconfigured has severity
// SeverityError here, and nothing else has. The order is that of the fields.
func Validate(p *clusterv1beta1.Placement) []Problem {
	return compile(p, expressions).problems
}
