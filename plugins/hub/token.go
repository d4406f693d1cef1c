// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// TokenOptions are the flags of hub token create.
type TokenOptions struct {
	options.Change
	// TTL is the lifetime of the token.
	TTL time.Duration
	// Cluster is the only cluster that may join with it; empty allows any name.
	Cluster string
	// Uses is how many clusters may join with it; nil means any number.
	Uses *int
	// Bootstrap creates a Kubernetes bootstrap token.
	Bootstrap bool
	// Print selects what is printed.
	Print string

	f *options.Factory
}

func newToken(f *options.Factory) *cobra.Command {
	o := &TokenOptions{f: f}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke join tokens",
		Long: options.Long(`
		Create a token with which clusters can ask to join, and print the join command.
		The same as "hub token create".`),
		Example: options.Example(`
		kubectl ocm hub token --cluster cluster1 --context hub
		kubectl ocm hub token --uses 3 --ttl 15m --context hub      # for three clusters of any name`),
	}
	o.flags(cmd)
	create := &cobra.Command{
		Use: "create", Short: "Create a token and print the join command",
		Example: options.Example(`
		kubectl ocm hub token create --cluster cluster1 --context hub`),
	}
	c := &TokenOptions{f: f}
	c.flags(create)
	cmd.AddCommand(create, newTokenList(f), newTokenRevoke(f))
	return cmd
}

func (o *TokenOptions) flags(cmd *cobra.Command) {
	cmd.Args = options.Args(0, 0, cmd.Name())
	var uses int
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("uses") {
			o.Uses = &uses
		}
		if err := o.Validate(); err != nil {
			return err
		}
		return o.Run(cmd.Context())
	}
	flags := cmd.Flags()
	o.AddFlags(flags, options.Parts{})
	options.DurationVar(flags, &o.TTL, "ttl", token.DefaultTTL, "lifetime of the token")
	flags.StringVarP(&o.Cluster, "cluster", "c", "", "the only cluster that may join with it")
	flags.IntVar(&uses, "uses", 0, "how many clusters may join with it; default: any number")
	flags.BoolVar(&o.Bootstrap, "use-bootstrap-token", false, "create a Kubernetes bootstrap token instead of a service account token")
	flags.StringVar(&o.Print, "print", "join-command", "what to print: join-command, token, bundle or kubeconfig")
	options.Hidden(flags, "cluster-name", "cluster")
	options.Apart(flags, "print", "output")
}

// Validate checks the flags.
func (o *TokenOptions) Validate() error {
	switch o.Print {
	case "join-command", "token", "bundle", "kubeconfig":
	default:
		return options.Usage(fmt.Sprintf("wrong value %q for --print", o.Print), "use join-command, token, bundle or kubeconfig")
	}
	if err := token.Check(o.TTL, o.Cluster); err != nil {
		return err
	}
	if o.Uses != nil {
		if err := token.CheckUses(*o.Uses, o.Bootstrap); err != nil {
			return err
		}
	}
	return o.Check(o.f.UI)
}

// Run creates the token and prints it.
func (o *TokenOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u.Note("hub: %s", c)
	wanted := token.Options{Common: o.Common(u, nil), Hub: c, TTL: o.TTL, Cluster: o.Cluster, Bootstrap: o.Bootstrap}
	if o.Uses != nil {
		wanted.Uses = *o.Uses
	}
	result, err := token.Create(ctx, wanted)
	if err != nil {
		return err
	}
	if done, err := o.Preview(u, "TokenResult", result, result.Items); done || err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "TokenResult", result, []string{result.ID})
	}
	return o.print(u, result)
}

func (o *TokenOptions) print(u *ui.UI, t token.Result) error {
	kubeconfig, err := t.Kubeconfig()
	if err != nil {
		return err
	}
	switch o.Print {
	case "token":
		u.Say("%s", t.Token)
	case "kubeconfig":
		u.Say("%s", kubeconfig)
	case "bundle":
		u.Say("%s", base64.StdEncoding.EncodeToString(kubeconfig))
	default:
		u.Say("%s", u.Own(joinLine(t)))
		u.Note("token %s expires in %s", t.ID, ui.Lasting(t.Expires.Sub(u.Streams.Clock.Now())))
		u.Note("%s", reach(t))
	}
	return nil
}

// reach says which clusters may join with a token.
func reach(t token.Result) string {
	switch {
	case t.Cluster != "":
		return "it is for cluster " + t.Cluster + " only"
	case t.Uses > 0:
		return "it is for " + ui.Many(t.Uses, "cluster") + " of any name until then; each may join with it again"
	}
	return "it is for any cluster name and any number of joins until then; --cluster NAME limits it to one cluster, --uses N to N clusters"
}

// usage returns how often a token was used: the number of clusters out of its limit, or
// the number of requests if it has no limit.
func usage(t request.Token) string {
	switch {
	case t.Limit > 0:
		return fmt.Sprintf("%d of %d", len(t.Joined), t.Limit)
	case t.Limit < 0:
		return fmt.Sprintf("%d of ?", len(t.Joined))
	}
	return strconv.Itoa(t.Uses)
}

// joinLine returns the command that joins with a token. The token goes through a pipe from
// echo, which is built into the shell, so that no process list shows it.
func joinLine(t token.Result) string {
	name := t.Cluster
	if name == "" {
		name = "<name>"
	}
	line := fmt.Sprintf("echo %s | kubectl ocm join %s --context <its context> --hub-apiserver %s --token-file -", t.Token, name, t.Server)
	if t.CAHash != "" {
		line += " --hub-ca-hash " + t.CAHash
	}
	return line
}

// TokenListOptions are the flags of hub token list.
type TokenListOptions struct {
	options.Listing

	f *options.Factory
}

func newTokenList(f *options.Factory) *cobra.Command {
	o := &TokenListOptions{f: f}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List join tokens", Args: options.Args(0, 0, "list"),
		Example: options.Example(`
		kubectl ocm hub token list --context hub`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if o.Selector != "" {
				return options.Usage("tokens have no labels that --selector could match", "leave it out: the list shows every token")
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	_ = cmd.Flags().MarkHidden("selector")
	return cmd
}

// Run prints the tokens.
func (o *TokenListOptions) Run(ctx context.Context) error {
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		tokens, err := token.List(ctx, token.ListOptions{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Hub: c})
		if err != nil {
			return options.Listed{}, err
		}
		l := options.Listed{
			Kind:  "TokenList",
			Items: tokens,
			Empty: "no tokens",
			Table: ui.Table{Heads: []string{"ID", "TYPE", "EXPIRES", "USES", "CLUSTER", "JOINED", "CREATED"}},
		}
		now := o.f.UI.Streams.Clock.Now()
		for _, t := range tokens {
			expires := "never"
			switch {
			case t.Expired:
				expires = "expired"
			case !t.Expires.IsZero():
				expires = ui.Lasting(t.Expires.Sub(now))
			}
			l.Names = append(l.Names, t.ID)
			l.Table.Rows = append(l.Table.Rows, []string{t.ID, t.Type, expires, usage(t), ui.Dash(t.Cluster), ui.Dash(firstFew(t.Joined)), ui.Age(t.Created, now)})
		}
		return l, nil
	})
}

// firstFew lists at most three names and the number of the rest.
func firstFew(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ",")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ","), len(names)-most)
}

// RevokeOptions are the flags of hub token revoke.
type RevokeOptions struct {
	options.Change
	// IDs of the tokens.
	IDs []string

	f *options.Factory
}

func newTokenRevoke(f *options.Factory) *cobra.Command {
	o := &RevokeOptions{f: f}
	cmd := &cobra.Command{
		Use: "revoke ID...", Short: "Revoke tokens at once and deny requests made with them", Args: options.Args(1, -1, "the ID of a token"),
		Example: options.Example(`
		kubectl ocm hub token revoke 7h2k9p --context hub`),
		ValidArgsFunction: complete.Tokens(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.IDs = args
			if err := o.Check(o.f.UI); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{Yes: true, Deletes: true})
	return cmd
}

// Run revokes the tokens.
func (o *RevokeOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	if !o.Reads() {
		if err := u.Confirm(o.Yes, "Revoke "+ui.Many(len(o.IDs), "token")+"?", []string{"hub: " + c.String(), "tokens: " + strings.Join(o.IDs, ", ")}); err != nil {
			return err
		}
	}
	var changes []fleet.Change
	for _, id := range o.IDs {
		done, err := token.Revoke(ctx, token.RevokeOptions{Common: o.Common(u, nil), Hub: c, ID: id})
		if err != nil && !o.Tolerates(err) {
			return err
		}
		changes = append(changes, done...)
	}
	return o.Finish(u, "RevokeResult", changes)
}
