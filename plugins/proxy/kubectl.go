// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// KubectlOptions are the flags of proxy kubectl and proxy port-forward.
type KubectlOptions struct {
	options.Targets
	// Account is the ManagedServiceAccount that the clusters are used as; empty for the user.
	Account string
	// Words are those of kubectl.
	Words []string

	f *options.Factory
}

func newKubectl(f *options.Factory) *cobra.Command {
	o := &KubectlOptions{f: f}
	cmd := &cobra.Command{
		Use: "kubectl -c CLUSTER [--] WORDS...", Short: "Run kubectl on managed clusters", Args: options.Args(1, -1, "what kubectl is to do"),
		Long: options.Long(`
		Run kubectl on a managed cluster that is reached through the hub of --context. All words after
		the flags are those of kubectl, with or without --. It has your terminal, and its exit code is
		that of this command. It gets its credentials, which are those you have for the hub, in a file
		that only you can read and that is removed when it ends.

		On several clusters, kubectl runs on each of them at the same time: tables get a column
		CLUSTER, -o json and -o yaml print one list, and the exit code is 3 if it fails on one of them.
		Objects of such a list tell their cluster in the annotation open-cluster-management.io/cluster-name.

		With --as-sa, clusters see their ManagedServiceAccount of that name instead of you. You need the
		right to managedserviceaccounts/proxy in the namespace of each cluster; nobody gets a token.`),
		Example: options.Example(`
		kubectl ocm proxy kubectl -c cluster1 --context hub -- get pods -A
		kubectl ocm proxy kubectl -c cluster1 --context hub exec -it deploy/web -- sh
		kubectl ocm proxy kubectl -l env=prod --context hub -- get deployments
		kubectl ocm proxy kubectl -c cluster1 --as-sa robot --context hub -- auth whoami`),
		ValidArgsFunction: complete.None,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Words = args
			return f.Do(cmd, o.Validate, o.Run)
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.AddFlags(cmd, complete.Targets(f))
	addAccount(cmd, &o.Account, complete.Accounts(f, o.only))
	return cmd
}

// only returns the cluster that is named; "" if there are several.
func (o *KubectlOptions) only() string {
	if o.single() {
		return o.Clusters[0]
	}
	return ""
}

// addAccount adds the flag that names a ManagedServiceAccount. It contradicts what names another user, because a
// request is made as one of them.
func addAccount(cmd *cobra.Command, account *string, words complete.Func) {
	cmd.Flags().StringVar(account, "as-sa", "", "name of the ManagedServiceAccount to use the cluster as, instead of as yourself")
	options.Apart(cmd.Flags(), "as-sa", "as", "as-group", "as-uid")
	_ = cmd.RegisterFlagCompletionFunc("as-sa", words)
}

// checkAccount returns an error for what cannot be the name of a ManagedServiceAccount, because it becomes a part of a
// path.
func checkAccount(name string) error {
	if name == "" {
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return options.Usage(fmt.Sprintf("%q cannot be the name of a ManagedServiceAccount", name), "name one of the cluster, for example --as-sa robot")
	}
	return nil
}

func newPortForward(f *options.Factory) *cobra.Command {
	o := &KubectlOptions{f: f}
	cmd := &cobra.Command{
		Use: "port-forward -c CLUSTER TYPE/NAME [LOCAL:]REMOTE...", Short: "Forward local ports to a pod or service of a managed cluster",
		Args: options.Args(2, -1, "what to forward to, or the port"),
		Long: options.Long(`
		Forward ports of this machine to a pod, or to a pod of a service or deployment, of a managed
		cluster that is reached through the hub of --context. kubectl does it; it listens on localhost
		until it is interrupted. 0 as the local port takes one that is free.

		With --as-sa the cluster sees one of its ManagedServiceAccounts instead of you.`),
		Example: options.Example(`
		kubectl ocm proxy port-forward -c cluster1 svc/web 8080:80 -n apps --context hub
		kubectl ocm proxy port-forward -c cluster1 deploy/web 0:80 --context hub
		kubectl ocm proxy port-forward -c cluster1 --as-sa robot svc/web 8080:80 -n apps --context hub`),
		ValidArgsFunction: complete.None,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Words = append([]string{"port-forward"}, args...)
			return f.Do(cmd, o.Validate, o.Run)
		},
	}
	cmd.Flags().StringSliceVarP(&o.Clusters, "cluster", "c", nil, "name of the managed cluster")
	_ = cmd.RegisterFlagCompletionFunc("cluster", complete.Clusters(f))
	addAccount(cmd, &o.Account, complete.Accounts(f, o.only))
	return cmd
}

// checkName returns an error for what cannot be the name of a cluster, because it becomes a part of a path.
func checkName(name string) error { return naming.CheckValue(name, "a cluster", "cluster1") }

// chosen are flags of kubectl that say which API server it talks to.
var chosen = []string{"--kubeconfig", "--context", "--cluster", "--server", "-s"}

// Validate checks the flags and the words.
func (o *KubectlOptions) Validate() error {
	if o.Empty() {
		return options.Usage("no cluster is named", "name it before kubectl's words: kubectl ocm proxy kubectl -c CLUSTER -- "+strings.Join(o.Words, " "))
	}
	for _, name := range o.Clusters {
		if err := checkName(name); err != nil {
			return err
		}
	}
	if err := checkAccount(o.Account); err != nil {
		return err
	}
	for _, word := range o.Words {
		if word == "--" {
			break // what follows is for a program in a container
		}
		if name, _, _ := strings.Cut(word, "="); slices.Contains(chosen, name) {
			return options.Usage(name+" would send kubectl elsewhere", "leave it out; flags of this command go before kubectl's words")
		}
	}
	if !o.single() {
		if why := interactive(o.Words); why != "" {
			return options.Usage(why+" cannot be done on several clusters at once", "name one cluster by -c")
		}
	}
	return o.Check(true)
}

// way is how a cluster is reached.
func (o *KubectlOptions) way(cluster string) proxy.Way {
	return proxy.Way{Cluster: cluster, Account: o.Account}
}

// single reports whether exactly one cluster is named.
func (o *KubectlOptions) single() bool {
	return len(o.Clusters) == 1 && o.Selector == "" && o.Set == "" && o.Placement == "" && !o.All
}

// Run runs kubectl.
func (o *KubectlOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	program := options.OnPath(o.f.UI, "kubectl")
	if program == "" {
		return &fleet.Error{Message: "there is no kubectl on PATH", Cause: "this command runs the kubectl that you have",
			Fix: fleet.Advice("install it, or use another client with: kubectl ocm proxy kubeconfig -c CLUSTER")}
	}
	clusters := o.Clusters
	if !o.single() {
		var err error
		if clusters, err = o.Resolve(ctx, hub); err != nil {
			return err
		}
	}
	k, err := o.prepare(program, clusters)
	if err != nil {
		return err
	}
	defer k.remove()
	if o.single() {
		return o.one(ctx, hub, k, clusters[0])
	}
	return o.several(ctx, hub, k, clusters)
}

// one runs kubectl with the streams of this process. If it fails because the cluster cannot be reached, the reason is
// told: kubectl knows only that a server refused to answer.
func (o *KubectlOptions) one(ctx context.Context, hub *fleet.Cluster, k *kubectl, cluster string) error {
	s := o.f.UI.Streams
	code, err := k.run(ctx, cluster, o.Words, s)
	if err != nil || code == 0 {
		return err
	}
	if code < signalled && ctx.Err() == nil {
		// An interrupt that has ended kubectl may arrive here later than its exit code.
		if why := proxy.Reach(ctx, hub, o.way(cluster)); why != nil && ctx.Err() == nil {
			return why
		}
	}
	return ui.Exit(code)
}

// interactive returns what of kubectl's words needs the terminal, or does not end by itself; "" for nothing.
func interactive(words []string) string {
	verb := verbOf(words)
	switch verb {
	case "attach", "edit", "port-forward", "proxy", "debug":
		return "kubectl " + verb
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case word == "--":
			return ""
		case value == "false":
		case name == "-w", name == "--watch", name == "--watch-only", name == "--follow", name == "--stdin", name == "--tty",
			verb == "logs" && name == "-f", verb == "exec" && (name == "-i" || name == "-t" || name == "-it" || name == "-ti"):
			return fmt.Sprintf("kubectl %s %s", verb, name)
		}
	}
	return ""
}

// verbOf returns the first of kubectl's words that is neither a flag nor the value of -n; "" if there is none.
func verbOf(words []string) string {
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "-n" || words[i] == "--namespace":
			i++
		case !strings.HasPrefix(words[i], "-"):
			return words[i]
		}
	}
	return ""
}
