// SPDX-License-Identifier: Apache-2.0

// Command kubectl-ocm is the krew plugin "ocm": called by kubectl as "kubectl
// ocm". Everything it does is in plugins/app, so that tests run it in process.
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
	context.AfterFunc(ctx, stop) // the second interruption ends the process at once
	code := app.Run(ctx, app.Process(), os.Args)
	stop()
	os.Exit(code)
}
