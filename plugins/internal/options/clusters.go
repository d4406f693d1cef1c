// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Clusters prints what a command did on each cluster: one line per cluster, or a table
// if some failed. line describes what was done on one of them.
func (c *Change) Clusters(u *ui.UI, kind string, result fleet.ClusterChanges, failure error, line func(fleet.ClusterChange) string) error {
	if failure == nil {
		if done, err := c.Preview(u, kind, result, result.Items); done || err != nil {
			return err
		}
	}
	if c.Format.Machine() {
		return u.Result(c.Format, kind, result, fleet.Names(result.Items))
	}
	if failure != nil && len(result.Clusters) > 1 {
		t := ui.Table{Heads: []string{"CLUSTER", "RESULT", "MESSAGE"}}
		for _, d := range result.Clusters {
			action := string(d.Action)
			if d.Failure != "" {
				action = "failed"
			}
			t.Rows = append(t.Rows, []string{d.Cluster, action, ui.Dash(d.Failure)})
		}
		return u.Report(t, c.Format == ui.Wide)
	}
	for _, d := range result.Clusters {
		if d.Failure == "" && d.Object != nil {
			u.Say("%s", line(d))
		}
	}
	return nil
}
