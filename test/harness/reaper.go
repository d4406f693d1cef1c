// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
	"sync"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/keeper"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// keeperVariable is set for a test binary that was started to serve a playground.
const keeperVariable = "OCM_HARNESS_KEEPER"

// init turns a test binary that was started as a keeper into one, before any test runs.
func init() {
	if os.Getenv(keeperVariable) != "" {
		os.Exit(keeper.Run(context.Background(), os.Args[1:], os.Stdin, os.Stderr))
	}
}

// keeperEnv is the environment of a test binary that serves a playground.
func keeperEnv() []string { return []string{keeperVariable + "=1"} }

// reaper is the one reaper of this test process.
var reaper = sync.OnceValues(func() (*process.Reaper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return process.NewReaper([]string{self, "reap"}, keeperEnv())
})
