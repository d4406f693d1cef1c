// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// collectAt is the GC percentage. An agent has little memory and plenty of CPU time. GOGC
// overrides it.
const collectAt = 30

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the program with these arguments and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, o.usage())
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "error: %v\n\n%s", err, o.usage())
		return exitUsage
	case o.command == "version":
		fmt.Fprintln(stdout, version.Get())
		return exitOK
	}
	log := logger(stderr, o.verbosity)
	if err := start(ctx, o, log); err != nil {
		log.Error(err, "Agent ended")
		return exitError
	}
	return exitOK
}

func start(ctx context.Context, o options, log logr.Logger) error {
	p, err := newProcess(o, log)
	if err != nil {
		return err
	}
	log.Info("Agent starts", "version", version.Get(), "command", o.command, "namespace", o.namespace)
	return p.run(ctx)
}

// logger returns a logger that writes JSON lines, also for messages of client-go.
func logger(w io.Writer, verbosity int) logr.Logger {
	log := logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
	klog.SetLogger(log.WithName("client"))
	return log
}

// connection returns the configuration for the cluster that this process manages.
func (o options) connection() (*rest.Config, error) {
	if o.kubeconfig == "" {
		return inpod.Config()
	}
	raw, err := os.ReadFile(o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig: %w", err)
	}
	c, err := kubeconfig.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig %s: %w", o.kubeconfig, err)
	}
	return &rest.Config{
		Host: c.Server, BearerToken: c.Token,
		TLSClientConfig: rest.TLSClientConfig{ServerName: c.TLSServerName, CAData: c.CAData, CertData: c.CertData, KeyData: c.KeyData},
	}, nil
}
