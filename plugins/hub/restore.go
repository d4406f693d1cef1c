// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/backup"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// RestoreOptions are the flags of hub restore.
type RestoreOptions struct {
	options.Change
	// File is the backup; "-" is standard input.
	File string
	// Merge adds what is missing to a hub that is not empty.
	Merge bool
	// Release goes on without clusters that have not returned.
	Release bool

	f *options.Factory
}

func newRestore(f *options.Factory) *cobra.Command {
	o := &RestoreOptions{f: f}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a hub from a file of hub backup",
		Long: options.Long(`
		Restore a hub on the cluster of --context, on which "hub init" has made an empty hub.
		Nothing that runs on a managed cluster is deleted or created again: clusters are accepted
		when everything else is there, and placements select clusters again when those have
		returned that were available. The command waits for that, and can be repeated after any
		failure. - reads standard input.`),
		Example: options.Example(`
		kubectl ocm hub restore hub.jsonl --context hub
		kubectl ocm hub restore - --context hub --dry-run < hub.jsonl`),
		Args: options.Args(1, 1, "the name of a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			if err := o.Check(o.f.UI); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.AddFlags(flags, options.Parts{Wait: true, WaitDefault: true})
	flags.BoolVar(&o.Merge, "merge", false, "restore onto a hub that is not empty: create what is missing, and keep what is there as it is")
	flags.BoolVar(&o.Release, "release", false, "have placements select clusters again at once, even if clusters have not returned")
	return cmd
}

// Run restores the hub.
func (o *RestoreOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	file, done, err := o.open(u)
	if err != nil {
		return err
	}
	defer done()
	u.Note("hub: %s", c)
	p := u.Progress()
	result, err := backup.Restore(ctx, backup.RestoreOptions{Common: o.Common(u, p.Step), Hub: c, File: file, Merge: o.Merge, Release: o.Release})
	p.Close()
	if result.Owners > 0 {
		u.Warn("%s not in the backup: objects that had such an owner have none now", fleet.AreMany(result.Owners, "owner"))
	}
	if result.Unchecked > 0 {
		u.Warn("%s not checked: the restore creates their namespaces first", fleet.AreMany(result.Unchecked, "object"))
	}
	if err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "RestoreResult", result, []string{string(result.Action)})
	}
	return o.print(u, c, result)
}

// open opens the file. Standard input is copied to a file that only the user can read, because the
// whole backup is checked before it is restored.
func (o *RestoreOptions) open(u *ui.UI) (io.ReadSeeker, func(), error) {
	if o.File != "-" {
		file, err := os.Open(o.File)
		if err != nil {
			return nil, nil, &fleet.Error{Kind: fleet.Usage, Message: o.File + " cannot be read", Cause: err.Error(), Fix: fleet.Advice("name a file that exists")}
		}
		return file, func() { _ = file.Close() }, nil
	}
	file, err := os.CreateTemp("", "kubectl-ocm-restore-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a file for standard input: %w", err)
	}
	done := func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}
	if _, err := io.Copy(file, u.Streams.In); err != nil {
		done()
		return nil, nil, fmt.Errorf("reading standard input: %w", err)
	}
	return file, done, nil
}

func (o *RestoreOptions) print(u *ui.UI, c *fleet.Cluster, r backup.RestoreResult) error {
	if o.Reads() || o.Format == ui.Wide {
		heads := []string{"KIND", "CREATED", "KEPT"}
		if o.Reads() {
			heads[1] = "TO CREATE"
		}
		t := ui.Table{Heads: heads}
		for _, k := range r.Kinds {
			t.Rows = append(t.Rows, []string{k.Kind, strconv.Itoa(k.Created), strconv.Itoa(k.Kept)})
		}
		if err := u.Report(t, true); err != nil || o.Reads() {
			return err
		}
	}
	u.Say("hub restored on %s (%s)", c, r.Action)
	if r.Held > 0 {
		u.Warn("%s selected: run the same command again without --wait=false when the clusters have returned", heldText(r.Held))
	}
	if r.Moved() {
		u.Note("the hub has another address or CA than before (%s, %s): join each cluster again, so that its agent learns of it:", r.Backup.Server, r.Backup.CAHash)
		u.Note("  %s", u.Own(strings.TrimSpace("kubectl ocm join NAME --context <its context> --hub-context "+c.Called()+" --accept")))
	}
	return nil
}

// heldText says how many placements are frozen.
func heldText(n int) string {
	if n == 1 {
		return "1 placement keeps what it"
	}
	return fmt.Sprintf("%d placements keep what they", n)
}
