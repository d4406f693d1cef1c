// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/lab"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/supply"
)

// noDownload is the value of --download-from that downloads nothing.
const noDownload = "none"

// mostClusters bounds --clusters: each takes about half a gigabyte of memory.
const mostClusters = 20

// UpOptions are the flags of dev up.
type UpOptions struct {
	options.Change
	// Name of the playground.
	Name string
	// Clusters is the number of managed clusters; 0 if it was not given.
	Clusters int
	// Nodes is the kind of nodes: process or real.
	Nodes string
	// BinDir is a folder with the programs of Kubernetes, and maybe with ours.
	BinDir string
	// DownloadFrom is the URL of a folder with those of Kubernetes, for a machine that has none, or
	// none to download nothing.
	DownloadFrom string
	// Use makes the hub the current context.
	Use bool

	f *options.Factory
}

func newUp(f *options.Factory) *cobra.Command {
	o := &UpOptions{f: f}
	cmd := &cobra.Command{
		Use: "up", Short: "Start a hub and managed clusters, or mend what died of them",
		Long: options.Long(`
		Start a hub and managed clusters on this machine, join them, and add a context for each to
		the kubeconfig: ocm-NAME-hub, ocm-NAME-cluster1 and so on. A second run starts what has
		ended since, and adds clusters if more are wanted.

		The programs of Kubernetes ` + playground.KubernetesVersion + ` (etcd, kube-apiserver, kube-controller-manager) are taken
		from --bin-dir or else from the first of KUBEBUILDER_ASSETS, a folder of PATH and the cache that
		has all of them. If none has, they are downloaded into the cache (70 MB), each with the checksum
		that this program knows; --download-from names a mirror, or none to download nothing.

		Those of hub and agent, ocm-hub and ocm-agent, are taken from --bin-dir or from
		beside this program, where the release archive has them.`),
		Example: options.Example(`
		kubectl ocm dev up
		kubectl ocm dev up --name big --clusters 5 --use`),
		Args: options.Args(0, 0, "up"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(cmd.Flags().Changed("clusters")); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{})
	nameFlag(cmd, &o.Name, defaultName, "name of the playground")
	cmd.Flags().IntVar(&o.Clusters, "clusters", 0, "number of managed clusters; without the flag it stays as it is, at first 2")
	cmd.Flags().StringVar(&o.Nodes, "nodes", "process", "kind of nodes: process, which run the pods of this project's images as processes")
	_ = cmd.RegisterFlagCompletionFunc("nodes", cobra.FixedCompletions([]string{"process"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&o.Use, "use", false, "make the hub the current context")
	directoryFlag(cmd, cmd.Flags(), &o.BinDir, "bin-dir", "folder with the programs of Kubernetes")
	cmd.Flags().StringVar(&o.DownloadFrom, "download-from", supply.Release,
		"URL of the folder from which missing programs of Kubernetes are downloaded, or none")
	_ = cmd.RegisterFlagCompletionFunc("download-from", cobra.FixedCompletions([]string{noDownload}, cobra.ShellCompDirectiveNoFileComp))
	options.Apart(cmd.Flags(), "bin-dir", "download-from")
	return cmd
}

// Validate checks the flags; counted tells whether a number of clusters was given.
func (o *UpOptions) Validate(counted bool) error {
	switch {
	case o.Nodes == "real":
		return &fleet.Error{Kind: fleet.Refused, Message: "dev up cannot make real nodes",
			Cause: "they need root, containerd and images that are built from this project's source",
			Fix:   fleet.Advice("in a checkout of the project, as root: make demo")}
	case o.Nodes != "process":
		return options.Usage(fmt.Sprintf("wrong value %q for --nodes", o.Nodes), "use process")
	case counted && (o.Clusters < 1 || o.Clusters > mostClusters):
		return options.Usage(fmt.Sprintf("a playground cannot have %d managed clusters", o.Clusters), fmt.Sprintf("use a number from 1 to %d", mostClusters))
	}
	if err := checkName(o.Name); err != nil {
		return err
	}
	if o.DownloadFrom != noDownload {
		if err := supply.CheckSource(o.DownloadFrom); err != nil {
			return options.Usage("--download-from cannot be used: "+err.Error(), "name the URL of a folder, or use none to download nothing")
		}
	}
	return o.Change.Check(o.f.UI)
}

// Run starts or mends the playground and prints what was done with each cluster.
func (o *UpOptions) Run(ctx context.Context) error {
	u := o.f.UI
	root, err := folder()
	if err != nil {
		return err
	}
	setup, err := o.setup(ctx)
	switch {
	case err != nil && !o.Reads():
		return err
	case errors.Is(err, playground.ErrNoBinaries) && o.downloads():
		u.Note("Kubernetes %s would be downloaded from %s first", playground.KubernetesVersion, o.DownloadFrom)
	case err != nil:
		u.Warn("this would fail: %v", err)
	}
	p := u.Progress()
	wanted := lab.Options{Common: o.Common(u, p.Step), Root: root, Name: o.Name, Clusters: o.Clusters, Setup: setup,
		Env: o.environment(), Kubeconfig: o.f.Kubeconfig(), Use: o.Use}
	u.Note("nodes: processes of this machine, because dev up makes no others; pods of foreign images stay Pending")
	result, err := lab.Up(ctx, wanted)
	p.Close()
	if err != nil {
		return o.explain(ctx, err)
	}
	return o.print(result, "PlaygroundUp")
}

// setup finds the programs.
func (o *UpOptions) setup(ctx context.Context) (lab.Setup, error) {
	self, err := os.Executable()
	if err != nil {
		return lab.Setup{}, fmt.Errorf("finding this program: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return lab.Setup{}, err
	}
	getenv := o.f.UI.Streams.Getenv
	sources := supply.Sources{Given: o.BinDir, Assets: getenv("KUBEBUILDER_ASSETS"), Path: filepath.SplitList(getenv("PATH")), Cache: playground.CacheDir(cache)}
	if own := getenv("OCM_KUBERNETES_CACHE"); own != "" {
		sources.Cache = own
	}
	binaries, err := supply.Kubernetes(ctx, sources)
	if errors.Is(err, playground.ErrNoBinaries) && o.downloads() && !o.Reads() {
		if err = o.download(ctx, sources.Cache); err == nil {
			binaries, err = supply.Kubernetes(ctx, sources)
		}
	}
	if err != nil {
		return lab.Setup{}, o.explain(ctx, err)
	}
	programs, err := supply.Programs(o.BinDir, filepath.Dir(self))
	if err != nil {
		return lab.Setup{}, o.explain(ctx, err)
	}
	return lab.Setup{Binaries: binaries, Programs: programs, Keeper: []string{self, "dev", "keep"}, Version: version.Get()}, nil
}

// downloads reports whether programs of Kubernetes that no folder has are downloaded.
func (o *UpOptions) downloads() bool { return o.BinDir == "" && o.DownloadFrom != noDownload }

// environment is what the background processes see of the user's.
func (o *UpOptions) environment() []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value := o.f.UI.Streams.Getenv(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// explain words the errors of a playground.
func (o *UpOptions) explain(ctx context.Context, err error) error {
	var taken *lab.Taken
	var fewer *lab.Fewer
	var absent *supply.Absent
	var worded *fleet.Error
	var failed *downloadError
	down := "kubectl ocm dev down --name " + o.Name
	switch {
	case errors.As(err, &taken):
		return &fleet.Error{Kind: fleet.Refused, Message: err.Error(), Cause: "nothing was started",
			Fix: fleet.Advice("use another --name, or remove it: kubectl config delete-context " + taken.Name), Err: err}
	case errors.As(err, &fewer):
		return &fleet.Error{Kind: fleet.Refused, Message: err.Error(), Fix: fleet.Advice("start again: " + down), Err: err}
	case errors.As(err, &absent):
		return &fleet.Error{Message: "the program " + absent.Program + " is missing", Cause: "it is neither in --bin-dir nor beside this program",
			Fix: fleet.Advice("install the plugin from its release archive for Linux, which has it, or name its folder by --bin-dir"), Err: err}
	case ctx.Err() != nil:
		return o.interrupted(down)
	case errors.As(err, &failed):
		return &fleet.Error{Message: "there is no Kubernetes " + playground.KubernetesVersion, Cause: strings.TrimSpace(err.Error()),
			Fix: fleet.Advice("run the same command again, put " + strings.Join(controlPlane, ", ") +
				" into one folder and name it by --bin-dir, or in a checkout of the project: make control-plane"), Err: err}
	case errors.Is(err, playground.ErrNoBinaries):
		where := "no folder has all three of"
		if o.BinDir != "" {
			where = o.BinDir + " does not have all three of"
		}
		return &fleet.Error{Message: "there is no Kubernetes " + playground.KubernetesVersion,
			Cause: where + " etcd, kube-apiserver and kube-controller-manager, of that version",
			Fix:   fleet.Advice("put them into one folder and name it by --bin-dir, or in a checkout of the project: make control-plane"), Err: err}
	case errors.Is(err, process.ErrBusy):
		return &fleet.Error{Message: "another command works on the playground " + o.Name, Fix: fleet.Advice("wait until it has ended"), Err: err}
	case errors.As(err, &worded):
		return err
	}
	return &fleet.Error{Message: "the playground " + o.Name + " is not up", Cause: strings.TrimSpace(err.Error()),
		Fix: fleet.Advice("run the same command again, or remove it: " + down), Err: err}
}

// interrupted tells what an interrupt has left.
func (o *UpOptions) interrupted(down string) error {
	e := &fleet.Error{Message: "interrupted", Cause: "nothing of the playground is left", Fix: fleet.Advice("run the same command again")}
	if root, err := folder(); err == nil {
		if _, err := os.Stat(filepath.Join(root, o.Name)); err == nil {
			e.Cause, e.Fix = "what runs of the playground still runs", fleet.Advice("run the same command again, or remove it: "+down)
		}
	}
	return e
}

// print prints what was done with each cluster.
func (o *UpOptions) print(result lab.Result, kind string) error {
	u := o.f.UI
	if o.Format.Machine() {
		return u.Result(o.Format, kind, result, contexts(result))
	}
	suffix := ""
	if o.Reads() {
		suffix = " (dry run)"
	}
	for _, item := range result.Items {
		u.Say("%s %s, context %s%s", item.Cluster, item.Action, item.Context, suffix)
	}
	if !o.Reads() {
		u.Next("kubectl ocm cluster list --context " + lab.Context(result.Name, lab.Hub))
	}
	return nil
}

func contexts(result lab.Result) []string {
	var names []string
	for _, item := range result.Items {
		names = append(names, item.Context)
	}
	return names
}
