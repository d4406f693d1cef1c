// SPDX-License-Identifier: Apache-2.0

package work

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// New makes the command.
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{Use: "work", Short: "Send objects to managed clusters"})
	cmd.AddCommand(newApply(f), newList(f), newDelete(f))
	return cmd
}

func words(f *options.Factory) options.Words {
	return options.Words{Clusters: complete.Clusters(f), Sets: complete.Sets(f)}
}

// show shows what happened on each cluster: a line each, or a table where some
// failed.
func show(u *ui.UI, o *options.Change, kind string, result fleet.WorkResult, failure error) error {
	if failure == nil {
		if done, err := o.Preview(u, kind, result, result.Items); done || err != nil {
			return err
		}
	}
	if o.Format.Machine() {
		return u.Result(o.Format, kind, result, names(result))
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
		return u.Report(t, false)
	}
	for _, d := range result.Clusters {
		if d.Failure == "" && d.Object != nil {
			u.Say("manifestwork/%s %s on %s", d.Object.GetName(), d.Action, d.Cluster)
		}
	}
	return nil
}

func names(result fleet.WorkResult) []string {
	var out []string
	for _, d := range result.Clusters {
		if d.Object != nil {
			out = append(out, d.Change.Name())
		}
	}
	return out
}
