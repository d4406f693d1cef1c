// SPDX-License-Identifier: Apache-2.0

// Command kubectl-ocm is the krew plugin "ocm", which kubectl runs as "kubectl
// ocm". All of its code is in plugins/app, so that tests can run it in process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	code := app.Run(ctx, app.Process(), os.Args)
	stop()
	os.Exit(code)
}
