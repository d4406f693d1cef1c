// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Targets are the flags that select managed clusters.
type Targets struct {
	cluster.Targets
}

// Words complete the values of the target flags.
type Words struct {
	// Clusters and Sets complete names, Placements NAMESPACE/NAME.
	Clusters, Sets, Placements cobra.CompletionFunc
}

// AddFlags adds the flags.
func (t *Targets) AddFlags(cmd *cobra.Command, words Words) {
	cmd.Flags().StringVarP(&t.Selector, "selector", "l", "", "managed clusters with these labels")
	t.AddListFlags(cmd, words)
}

// AddListFlags adds the flags to a listing, which already has -l.
func (t *Targets) AddListFlags(cmd *cobra.Command, words Words) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&t.Clusters, "cluster", "c", nil, "names of managed clusters")
	flags.StringVar(&t.Set, "clusterset", "", "members of this cluster set")
	flags.StringVar(&t.Placement, "placement", "", "clusters that this Placement currently selects, NAMESPACE/NAME")
	flags.BoolVar(&t.All, "all", false, "all managed clusters")
	Hidden(flags, "clusters", "cluster")
	for flag, complete := range map[string]cobra.CompletionFunc{"cluster": words.Clusters, "clusterset": words.Sets, "placement": words.Placements} {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete)
	}
}

// CheckAll validates the flags of a command that changes something on target clusters.
func (t *Targets) CheckAll(c *Change, u *ui.UI) error {
	if err := t.Check(true); err != nil {
		return err
	}
	return c.Check(u)
}

// Check validates the flags. If need is set, it is an error to give none.
func (t *Targets) Check(need bool) error {
	if need && t.Empty() {
		return Usage("no cluster is named", "name clusters by -c, -l, --clusterset, --placement, or all of them by --all")
	}
	if t.All && (len(t.Clusters) > 0 || t.Selector != "" || t.Set != "" || t.Placement != "") {
		return Usage("--all cannot be combined with other ways to choose clusters", "leave one of them out")
	}
	if slices.Contains(t.Clusters, "") {
		return Usage("the name of a cluster is empty", "for example -c cluster1,cluster2")
	}
	if t.Placement != "" {
		if _, _, err := t.PlacementName(); err != nil {
			return Usage(fmt.Sprintf("wrong value %q for --placement", t.Placement), "name it as NAMESPACE/NAME")
		}
	}
	if _, err := labels.Parse(t.Selector); err != nil {
		return Usage("wrong label selector "+t.Selector, "for example -l env=prod")
	}
	return nil
}
