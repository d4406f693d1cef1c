// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/node"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// Run runs the process named by args until it is done or ctx ends, and returns the exit
// code. in is the owner's pipe for a reaper; logs and errors go to errOut.
func Run(ctx context.Context, args []string, in io.Reader, errOut io.Writer) int {
	if err := run(ctx, args, in, errOut); err != nil {
		fmt.Fprintln(errOut, "error:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, in io.Reader, errOut io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "reap":
		return process.Reap(in)
	case len(args) == 2 && args[0] == "node":
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		return runNode(ctx, args[1], errOut)
	default:
		return fmt.Errorf("reading arguments %q: want reap, or node CONFIG", args)
	}
}

func runNode(ctx context.Context, path string, errOut io.Writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading configuration: %w", err)
	}
	var config node.Config
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("reading configuration %s: %w", path, err)
	}
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(errOut)))
	klog.SetLogger(log)
	return node.Run(logr.NewContext(ctx, log), config)
}
