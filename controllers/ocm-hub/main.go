// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

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

// agentImage returns the image of agents that the environment names; empty without one.
func agentImage() string { return os.Getenv("AGENT_IMAGE") }

// command returns the root command.
func command(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "ocm-hub", Short: "The hub of Open Cluster Management", Version: version.Get(),
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(
		operatorCommand(stderr, "run", "Run operator, controllers and admission in one process"),
		operatorCommand(stderr, "operator", "Run the operator, which runs everything else in Deployments of its own"),
		webhookCommand(stderr),
	)
	for _, part := range parts {
		root.AddCommand(componentCommand(stderr, part))
	}
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { cmd.Println(version.Get()) },
	})
	return root
}

// connection returns the configuration for the hub's API server. Requests are not
// rate-limited on the client: API priority and fairness does that better.
func connection(kubeconfig string) (*rest.Config, error) {
	config, err := inpod.Config()
	if kubeconfig != "" {
		if filepath.IsAbs(kubeconfig) {
			kubeconfig = inpod.Path(kubeconfig)
		}
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
