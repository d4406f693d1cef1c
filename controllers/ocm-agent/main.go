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
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// collectAt is the GC percentage. An agent has little memory and plenty of CPU time. GOGC
// overrides it.
const collectAt = 20

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
	case o.name == "version":
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
	log.Info("Agent starts", "version", version.Get(), "command", o.name, "namespace", o.namespace)
	err = p.run(ctx)
	if file, ok := errors.AsType[changedFile](err); ok {
		log.Info("A watched file changed; the process ends, to be started again with it", "file", string(file))
		return nil
	}
	return err
}

// logger returns a logger that writes JSON lines, also for messages of client-go.
func logger(w io.Writer, verbosity int) logr.Logger {
	log := logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
	klog.SetLogger(log.WithName("client"))
	return log
}
