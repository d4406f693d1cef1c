// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/keeper"
)

const usage = "usage: demo up | demo down"

// keep is the hidden argument with which the demo runs itself as the keeper of its
// clusters.
const keep = "keep"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	if len(args) > 0 && args[0] == keep {
		return keeper.Run(ctx, args[1:], os.Stdin, os.Stderr)
	}
	if len(args) > 1 && args[0] == hold {
		return report(holdNodes(ctx, args[1], args[2:]))
	}
	if len(args) != 1 || (args[0] != "up" && args[0] != "down") {
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	return report(do(ctx, args[0]))
}

func report(err error) int {
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	return 0
}

func do(ctx context.Context, verb string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("finding the user's cache directory: %w", err)
	}
	dir := filepath.Join(cache, "kubectl-ocm", "demo")
	if verb == "down" {
		if err := remove(ctx, dir); err != nil {
			return err
		}
		fmt.Println("The demo is stopped and its directory is removed.")
		return nil
	}
	d, err := newDemo(ctx, dir, playground.CacheDir(cache))
	if err != nil {
		return err
	}
	return d.up(ctx)
}

// remove ends what an earlier demo left running, and deletes its directory.
func remove(ctx context.Context, dir string) error {
	stopNodes(ctx, dir)
	if err := playground.Remove(dir); err != nil {
		return fmt.Errorf("removing the demo: %w", err)
	}
	return nil
}
