// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/describe"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// GetOptions are the flags of cluster get.
type GetOptions struct {
	options.Output
	// Name of the cluster.
	Name string

	f *options.Factory
}

func newGet(f *options.Factory) *cobra.Command {
	o := &GetOptions{f: f}
	cmd := &cobra.Command{
		Use: "get NAME", Aliases: []string{"describe"}, Short: "Show all that the hub knows of a cluster", Args: options.Args(1, 1, "the name of the cluster"),
		Long: options.Long(`
		Show a managed cluster on one page: its state, labels, claims and taints, its conditions,
		the sets it is in, the placements that select it, its add-ons and works, and the last
		events.`),
		Example: options.Example(`
		kubectl ocm cluster get cluster1 --context hub
		kubectl ocm cluster get cluster1 -o json --context hub`),
		ValidArgsFunction: complete.First(complete.Clusters(f)),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return f.Do(cmd, o.Format.Check, o.Run)
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// Run prints the cluster.
func (o *GetOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	c, err := describe.Read(ctx, describe.Options{Common: fleet.Common{Clock: u.Streams.Clock}, Hub: hub, Name: o.Name})
	if err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "Cluster", c, []string{resource + c.Name})
	}
	for i, t := range []ui.Table{o.summary(&c), o.conditions(&c), sets(&c), o.addons(&c), o.works(&c), o.events(&c)} {
		if len(t.Rows) == 0 {
			continue
		}
		if i > 0 {
			u.Say("")
		}
		if err := u.Report(t, o.Format == ui.Wide); err != nil {
			return err
		}
	}
	return nil
}

// summary has one value per row; a value with several parts has one row for each.
func (o *GetOptions) summary(c *describe.Cluster) ui.Table {
	now, seen := o.f.UI.Streams.Clock.Now(), ""
	if c.LastSeen != nil {
		seen = ui.Age(*c.LastSeen, now) + " ago"
	}
	t := ui.Table{Heads: []string{"NAME", c.Name}}
	for _, row := range []struct {
		name   string
		values []string
	}{
		{"STATUS", []string{strings.Trim(c.Status+": "+c.Message, ": ")}}, {"AGE", []string{ui.Age(c.Created, now)}}, {"LAST-SEEN", []string{seen}},
		{"VERSION", []string{c.Version}}, {"AGENT-VERSION", []string{c.AgentVersion}}, {"CLOCK", []string{c.Clock}},
		{"CPU", []string{amount(c.CPU)}}, {"MEMORY", []string{memory(c.Memory)}}, {"URL", c.URLs}, {"LABELS", pairs(c.Labels)},
		{"CLAIMS", pairs(c.Claims)}, {"TAINTS", c.Taints}, {"PLACEMENTS", c.Placements},
	} {
		for i, value := range row.values {
			if i > 0 {
				row.name = ""
			}
			t.Rows = append(t.Rows, []string{row.name, ui.Dash(value)})
		}
	}
	return t
}

// pairs returns KEY=VALUE for each entry of a map, sorted.
func pairs(m map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, key+"="+m[key])
	}
	return out
}

func (o *GetOptions) age(at metav1.Time) string { return ui.Age(at, o.f.UI.Streams.Clock.Now()) }

// conditions marks each condition by whether a healthy cluster has it.
func (o *GetOptions) conditions(c *describe.Cluster) ui.Table {
	t := ui.Table{Heads: []string{"CONDITION", "STATE", "SINCE", "REASON", "MESSAGE"}, Least: []string{"SINCE", "REASON"}}
	for _, is := range c.Conditions {
		t.Rows = append(t.Rows, []string{is.Type, mark(o.f.UI, is.Good) + " " + is.Status, o.age(is.Since), ui.Dash(is.Reason), ui.Dash(is.Message)})
	}
	return t
}

func mark(u *ui.UI, good bool) string {
	if good {
		return u.Symbol(fleet.Done)
	}
	return u.Symbol(fleet.Broken)
}

func sets(c *describe.Cluster) ui.Table {
	t := ui.Table{Heads: []string{"SET", "BOUND-NAMESPACES"}}
	for _, s := range c.Sets {
		t.Rows = append(t.Rows, []string{s.Name, ui.Dash(strings.Join(s.Bound, ","))})
	}
	return t
}

func (o *GetOptions) addons(c *describe.Cluster) ui.Table {
	t := ui.Table{Heads: []string{"ADD-ON", "AVAILABLE", "LEASE", "AGE", "MESSAGE"}}
	for _, a := range c.AddOnStates {
		t.Rows = append(t.Rows, []string{a.Name, ui.Dash(a.Available), ui.Dash(a.Lease), o.age(a.Created), ui.Dash(a.Message)})
	}
	return t
}

func (o *GetOptions) works(c *describe.Cluster) ui.Table {
	t := ui.Table{Heads: []string{"WORK", "STATE", "OBJECTS", "OWNER", "AGE", "MESSAGE"}}
	for _, w := range c.WorkStates {
		objects := fmt.Sprintf("%d/%d", w.Objects.Good, w.Objects.Total)
		t.Rows = append(t.Rows, []string{w.Name, w.State, objects, ui.Dash(w.Owner), o.age(w.Created), ui.Dash(w.Message)})
	}
	return t
}

func (o *GetOptions) events(c *describe.Cluster) ui.Table {
	t := ui.Table{Heads: []string{"EVENT", "TYPE", "OBJECT", "REASON", "MESSAGE"}}
	for _, e := range c.Events {
		t.Rows = append(t.Rows, []string{o.age(e.At), cmp.Or(e.Type, "Normal"), e.Object, ui.Dash(e.Reason), ui.Dash(e.Message)})
	}
	return t
}
