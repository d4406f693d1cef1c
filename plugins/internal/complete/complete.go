// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// budget limits the time for the requests of one completion.
const budget = 300 * time.Millisecond

// Func is a cobra completion function.
type Func = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// First completes the first argument only.
func First(of Func) Func {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return None(cmd, args, typed)
		}
		return of(cmd, args, typed)
	}
}

// Contexts completes contexts of the kubeconfig.
func Contexts(f *options.Factory) Func {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return matching(f.Contexts(), nil, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// Clusters completes managed clusters of the selected context.
func Clusters(f *options.Factory) Func { return remote(f, naming.Clusters) }

// Accounts completes the ManagedServiceAccounts of a cluster; of all clusters if it returns "".
func Accounts(f *options.Factory, cluster func() string) Func {
	return remote(f, func(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
		return naming.Accounts(ctx, hub, cluster())
	})
}

// Services completes the Services that a cluster exposes. of returns the cluster and the namespace of its agent.
func Services(f *options.Factory, of func() (cluster, namespace string)) Func {
	return remote(f, func(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
		cluster, namespace := of()
		if cluster == "" {
			return nil, nil
		}
		exposed, err := proxy.Exposed(ctx, hub, cluster, namespace)
		names := make([]string, 0, len(exposed))
		for _, s := range exposed {
			names = append(names, s.String())
		}
		return names, err
	})
}

// Pending completes clusters that wait to be accepted.
func Pending(f *options.Factory) Func { return remote(f, naming.Pending) }

// Works completes names of ManifestWorks.
func Works(f *options.Factory) Func { return remote(f, naming.Works) }

// PlacedWorks completes ManifestWorks as CLUSTER/NAME.
func PlacedWorks(f *options.Factory) Func { return remote(f, naming.PlacedWorks) }

// AddOns completes names of add-ons.
func AddOns(f *options.Factory) Func { return remote(f, naming.AddOns) }

// Namespaces completes the namespaces of the selected context.
func Namespaces(f *options.Factory) Func { return remote(f, naming.Namespaces) }

// Sets completes cluster sets.
func Sets(f *options.Factory) Func { return remote(f, naming.Sets) }

// Placements completes placements: as NAME in the namespace given with -n, otherwise
// as NAMESPACE/NAME in all namespaces.
func Placements(f *options.Factory) Func { return placements(f, f.GivenNamespace) }

// AllPlacements completes the placements of all namespaces as NAMESPACE/NAME.
func AllPlacements(f *options.Factory) Func { return placements(f, func() string { return "" }) }

func placements(f *options.Factory, namespace func() string) Func {
	return remote(f, func(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
		return placement.Names(ctx, hub, namespace())
	})
}

// Targets completes the flags that select managed clusters.
func Targets(f *options.Factory) options.Words {
	return options.Words{Clusters: Clusters(f), Sets: Sets(f), Placements: AllPlacements(f)}
}

// Tokens completes IDs of join tokens.
func Tokens(f *options.Factory) Func { return remote(f, naming.Tokens) }

// None offers nothing, not even files.
func None(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// remote completes names read from the hub. If there is no hub, it shows a message
// instead.
func remote(f *options.Factory, names func(context.Context, *fleet.Cluster) ([]string, error)) Func {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		c, err := f.Cluster("")
		if err != nil {
			return cobra.AppendActiveHelp(nil, "no context is selected"), cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithCancel(cmd.Context())
		defer cancel()
		expired := f.UI.Streams.Clock.After(budget)
		go func() {
			select {
			case <-expired:
				cancel()
			case <-ctx.Done():
			}
		}()
		found, err := names(ctx, c)
		if err != nil {
			return cobra.AppendActiveHelp(nil, "no hub answers in context "+c.Context), cobra.ShellCompDirectiveNoFileComp
		}
		prefix, word := "", typed
		if i := strings.LastIndexByte(typed, ','); i >= 0 {
			prefix, word = typed[:i+1], typed[i+1:]
		}
		var out []string
		for _, name := range matching(found, args, word) {
			out = append(out, prefix+name)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// matching returns the names that begin with typed and are not yet given.
func matching(names, given []string, typed string) []string {
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, typed) && !slices.Contains(given, name) {
			out = append(out, name)
		}
	}
	return out
}
