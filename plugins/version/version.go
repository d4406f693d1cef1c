// SPDX-License-Identifier: Apache-2.0

package version

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Options are the flags of version.
type Options struct {
	options.Output
	// Client prints the version of this program only.
	Client bool

	f *options.Factory
}

// report is what version prints.
type report struct {
	Client client           `json:"client"`
	Hub    *hub.VersionInfo `json:"hub,omitempty"`
}

// client is the program itself.
type client struct {
	// Project distinguishes this ocm from other programs of that name.
	Project  string `json:"project"`
	Version  string `json:"version"`
	Platform string `json:"platform"`
	Go       string `json:"go"`
}

// New returns the command "version".
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	cmd := &cobra.Command{
		Use: "version", Short: "Show the versions of this program, the hub and the agents", Args: options.Args(0, 0, "version"),
		Example: options.Example(`
		kubectl ocm version --client
		kubectl ocm version --context hub`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Format.Check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.Client, "client", false, "print the version of this program only, without any request")
	return cmd
}

// Run prints the versions. If the hub cannot be read, it prints a warning.
func (o *Options) Run(ctx context.Context) error {
	r := report{Client: client{Project: "Open Cluster Management", Version: version.Get(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}}
	if !o.Client {
		r.Hub = o.readHub(ctx)
	}
	if o.Format.Machine() {
		return o.f.UI.Result(o.Format, "Version", r, []string{"version/" + r.Client.Version})
	}
	u := o.f.UI
	u.Say("client  %s  kubectl ocm of %s  %s %s", r.Client.Version, r.Client.Project, r.Client.Platform, r.Client.Go)
	if r.Hub == nil {
		return nil
	}
	u.Say("hub     %s  %s", r.Hub.Version, r.Hub.Image)
	if len(r.Hub.Agents) == 0 {
		return nil
	}
	t := ui.Table{Heads: []string{"AGENT", "COUNT"}}
	for _, a := range r.Hub.Agents {
		t.Rows = append(t.Rows, []string{a.Version, a.CountText()})
	}
	if err := u.Report(t, o.Format == ui.Wide); err != nil {
		return err
	}
	u.Say("%s", r.Hub.Skew)
	return nil
}

// readHub reads the hub's versions; it returns nil, after a warning, if it cannot.
func (o *Options) readHub(ctx context.Context) *hub.VersionInfo {
	c, err := o.f.Cluster("")
	if err == nil {
		var info hub.VersionInfo
		if info, err = hub.Versions(ctx, c, version.Get()); err == nil {
			return &info
		}
	}
	o.f.UI.Warn("no hub: %v", err)
	return nil
}
