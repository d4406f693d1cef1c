// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"bytes"
	"os"
	"os/exec"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

// look is how often the memory of a command is read.
const look = 10 * time.Millisecond

// Plugin runs a command of the plugin on the hub, and returns how long it took and the most
// memory that it was seen with.
func (s *Scene) Plugin(args ...string) (took time.Duration, most memory.Usage) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), harness.Program(s.t, "plugins/kubectl-ocm"), append(args, "--context", "hub")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	require.NoError(s.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			require.NoError(s.t, err, "%v\n%s", args, out.String())
			return time.Since(began), most
		case <-time.After(look):
			if now, err := memory.Of(cmd.Process.Pid); err == nil {
				most = most.Max(now)
			}
		}
	}
}
