// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/backup"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// BackupOptions are the flags of hub backup.
type BackupOptions struct {
	options.Output
	// Timeout limits the time of the command.
	Timeout time.Duration
	// File is the file to write; "-" is standard output.
	File string
	// Secrets are Secrets to save, as namespace/name.
	Secrets []string

	f *options.Factory
}

func newBackup(f *options.Factory) *cobra.Command {
	o := &BackupOptions{f: f}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Save everything that a hub is to a file",
		Long: options.Long(`
		Save the clusters, sets, placements with their decisions, works, add-ons, namespaces and
		people's rights of a hub to a file with one JSON object a line, for "hub restore". - writes
		to standard output. Only you can read the file, because manifests of works may be secret;
		other Secrets are left out, except those that you name.`),
		Example: options.Example(`
		kubectl ocm hub backup hub.jsonl --context hub
		kubectl ocm hub backup - --context hub | gzip > hub.jsonl.gz`),
		Args: options.Args(1, 1, "the name of a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddFlags(cmd.Flags())
	options.DurationVar(cmd.Flags(), &o.Timeout, "timeout", 5*time.Minute, "deadline of the whole command, for example 90s or 5m")
	cmd.Flags().StringSliceVar(&o.Secrets, "include-secrets", nil, "Secrets to save too, as NAMESPACE/NAME; whoever has the file has them")
	return cmd
}

// Validate checks the flags.
func (o *BackupOptions) Validate() error {
	for _, name := range o.Secrets {
		if parts := strings.Split(name, "/"); len(parts) != 2 || parts[0] == "" || parts[1] == "" {
			return options.Usage(fmt.Sprintf("wrong value %q for --include-secrets", name), "for example --include-secrets apps/registry-login")
		}
	}
	if o.File == "-" && o.Format.Machine() {
		return options.Usage("the backup and -o "+string(o.Format)+" both go to standard output", "name a file, or leave out -o")
	}
	return o.Format.Check()
}

// Run writes the backup.
func (o *BackupOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u.Note("hub: %s", c)
	var secrets []types.NamespacedName
	for _, name := range o.Secrets {
		namespace, name, _ := strings.Cut(name, "/")
		secrets = append(secrets, types.NamespacedName{Namespace: namespace, Name: name})
	}
	p := u.Progress()
	var result backup.SaveResult
	err = o.to(u, func(out io.Writer) (err error) {
		result, err = backup.Save(ctx, backup.SaveOptions{
			Common: fleet.Common{Timeout: o.Timeout, Clock: u.Streams.Clock, Progress: p.Step}, Hub: c, Program: version.Get(), Secrets: secrets, Out: out,
		})
		return err
	})
	p.Close()
	if err != nil {
		return err
	}
	o.warn(u, result)
	if o.Format.Machine() {
		return u.Result(o.Format, "BackupResult", result, []string{o.File})
	}
	say := u.Say
	if o.File == "-" {
		say = u.Note
	}
	total := 0
	for _, n := range result.Counts {
		total += n
	}
	say("hub saved to %s: %s of %s", o.File, ui.Many(total, "object"), ui.Many(len(result.Counts), "kind"))
	return nil
}

// to gives do the file to write. An earlier file is replaced when the new one is complete.
func (o *BackupOptions) to(u *ui.UI, do func(io.Writer) error) error {
	if o.File == "-" {
		return do(u.Streams.Out)
	}
	if info, err := os.Stat(o.File); err == nil && !info.Mode().IsRegular() {
		return options.Usage(o.File+" is not a file", "name a file, or - for standard output")
	}
	file, err := os.CreateTemp(filepath.Dir(o.File), "."+filepath.Base(o.File)+"-")
	if err != nil {
		return &fleet.Error{Kind: fleet.Usage, Message: o.File + " cannot be written", Cause: err.Error(), Fix: fleet.Advice("name a file in a folder that exists")}
	}
	defer func() { _ = os.Remove(file.Name()) }()
	err = do(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(file.Name(), o.File); err != nil {
		return fmt.Errorf("writing %s: %w", o.File, err)
	}
	return nil
}

// warn tells what may be missing in the backup, or must not be seen by others.
func (o *BackupOptions) warn(u *ui.UI, r backup.SaveResult) {
	if len(r.Deleted) > 0 {
		u.Warn("left out, because it is being deleted: %s", strings.Join(r.Deleted, ", "))
	}
	if len(r.Foreign) > 0 {
		u.Warn("configurations of add-ons of these kinds are not in the backup; save them yourself: %s", strings.Join(r.Foreign, ", "))
	}
	if r.Secret > 0 {
		u.Warn("manifests of %s hold Secrets: keep the backup as safe as those", ui.Many(r.Secret, "work"))
	}
	if n := r.Counts["Secret"]; n > 0 {
		u.Warn("the backup holds %s: keep it as safe as those", ui.Many(n, "Secret"))
	}
}
