// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/unjoin"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// LeavingCluster describes what will happen to the works of a cluster that leaves
// its hub.
func LeavingCluster(name string, plan unjoin.Plan) string {
	fate := "removed from the cluster"
	if plan.Keeps {
		fate = "left on the cluster"
	}
	return fmt.Sprintf("managedcluster/%s: %s, with %s; %s %s", name, plan.Hub, ui.Many(plan.Works, "work"), ui.Many(plan.Objects, "object"), fate)
}

// shownWorks is the maximum number of works named in a line.
const shownWorks = 8

// Staying returns the end of a line that names the works whose objects stay on the
// cluster; empty if there are none.
func Staying(works []unjoin.AppliedWork) string {
	if len(works) == 0 {
		return ""
	}
	var names []string
	objects := 0
	for _, w := range works {
		objects += w.Objects
		names = append(names, fmt.Sprintf("%s (%d)", w.Work, w.Objects))
	}
	if len(works) > shownWorks {
		names = append(names[:shownWorks], fmt.Sprintf("and %d more", len(works)-shownWorks))
	}
	return fmt.Sprintf("; %s of %s stay on the cluster: %s", ui.Many(objects, "object"), ui.Many(len(works), "work"), strings.Join(names, ", "))
}
