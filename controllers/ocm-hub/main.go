// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// GC percentages. The hub keeps much memory and produces little garbage: with collectAt there
// is one collection of about 15 ms every ten seconds at rest, and about six per second while
// the hub accepts clusters. A starting hub produces much garbage for some seconds: with
// fillingAt, collections take a tenth of its time instead of a third. GOGC overrides both.
const collectAt, fillingAt = 15, 80

// collect sets the GC percentage, unless GOGC does, and returns unused memory to the
// operating system.
func collect(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	debug.FreeOSMemory()
}

func main() {
	collect(fillingAt)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(os.Stdout, os.Stderr).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(1)
	}
}

// command returns the root command.
func command(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "ocm-hub", Short: "The hub of Open Cluster Management", Version: version.Get(),
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(runCommand(stderr), &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { cmd.Println(version.Get()) },
	})
	return root
}

// runCommand returns the command that runs the compact layout.
func runCommand(stderr io.Writer) *cobra.Command {
	var kubeconfig string
	var verbosity int
	var cleanup []string
	p := &process{processConfig: processConfig{Clock: clock.RealClock{}, Policy: certs.DefaultPolicy(), Steady: func() { collect(collectAt) }}}
	cmd := &cobra.Command{
		Use: "run", Short: "Run operator, controllers and admission in one process", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.ManifestLimit < 1 || p.ManifestLimit > webhook.LimitOfManifests {
				return fmt.Errorf("--manifestLimit=%d: must be 1 to %d bytes, since a work and its status are one object", p.ManifestLimit, webhook.LimitOfManifests)
			}
			p.Log = logger(stderr, verbosity)
			var err error
			if p.REST, err = connection(kubeconfig); err != nil {
				return err
			}
			if err := clustermanager.CheckLabels(p.Labels); err != nil {
				return fmt.Errorf("--labels: %w", err)
			}
			order, bad := gc.ParseOrder(cleanup)
			for _, err := range bad {
				p.Log.Error(err, "Ignoring an entry of --gc-resource-list")
			}
			p.Cleanup = order
			p.Log.Info("Hub starts", "version", version.Get(), "pod", inpod.Name())
			return p.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the hub; empty means the pod's ServiceAccount")
	flags.IntVarP(&verbosity, "v", "v", 0, "log level: 0 states, 1 decisions, 3 details")
	flags.StringToStringVar(&p.Labels, "labels", nil, "labels of the namespace and the RBAC objects of every cluster, as key=value,...")
	flags.BoolVar(&p.SyncLabels, "enable-sync-labels", false, "copy the labels of the ClusterManager to the namespace and the RBAC objects of every cluster")
	flags.StringSliceVar(&cleanup, "gc-resource-list", nil,
		"resources to remove with a cluster, in this order, as group/version/resource,...; empty means add-ons, then works")
	flags.StringVar(&p.AgentImage, "agent-image", os.Getenv("AGENT_IMAGE"),
		"image of the agent on imported clusters; empty means that beside the hub's image (environment: AGENT_IMAGE)")
	flags.IntVar(&p.ManifestLimit, "manifestLimit", webhook.MaxManifests, "maximum total size of the manifests of one work, in bytes")
	flags.DurationVar(&p.Policy.SignerLife, "signer-duration", p.Policy.SignerLife, "lifetime of the certificate authority of the webhooks")
	flags.DurationVar(&p.Policy.LeafLife, "serving-cert-duration", p.Policy.LeafLife, "lifetime of the serving certificates of the webhooks")
	return cmd
}

// connection returns the configuration for the hub's API server. Requests are not
// rate-limited on the client: API priority and fairness does that better.
func connection(kubeconfig string) (*rest.Config, error) {
	config, err := inpod.Config()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "ocm-hub/" + version.Get()
	return config, nil
}

// logger returns a logger that writes JSON lines, also for messages of libraries.
func logger(w io.Writer, verbosity int) logr.Logger {
	log := logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
	klog.SetLogger(log.WithName("client"))
	return log
}
