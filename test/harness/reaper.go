// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"sync"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/playground/process"
)

// reaperVariable tells a test binary that it is the reaper of another one.
const reaperVariable = "OCM_HARNESS_REAPER"

// init turns a test binary that was started as reaper into one, before any test.
func init() {
	if os.Getenv(reaperVariable) == "" {
		return
	}
	if err := process.Reap(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "reaper:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// reaper is the one reaper of this test process.
var reaper = sync.OnceValues(func() (*process.Reaper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return process.NewReaper([]string{self}, []string{reaperVariable + "=1"})
})
