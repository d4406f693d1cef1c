// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandLine(t *testing.T) {
	for name, tc := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"help": {
			[]string{"--help"},
			exitOK,
			"usage: helloworld-addon controller|agent|cleanup [flags]",
			"",
		},
		"no command":             {nil, exitUsage, "", "error: give one command: controller, agent or cleanup"},
		"an unknown command":     {[]string{"start"}, exitUsage, "", "error: give one command: controller, agent or cleanup"},
		"two commands":           {[]string{"agent", "cleanup"}, exitUsage, "", "error: give one command"},
		"an unknown flag":        {[]string{"agent", "--hub"}, exitUsage, "", "error: unknown flag: --hub"},
		"a controller, no image": {[]string{"controller"}, exitError, "", "--agent-image: must be set"},
		"an agent, nothing is said": {
			[]string{"agent"},
			exitError,
			"",
			`--hub-kubeconfig: must be set\n--cluster-name: must be set\n--addon-namespace: must be set`,
		},
		"a cleanup without a place": {[]string{"cleanup"}, exitError, "", "--addon-namespace: must be set"},
		"a kubeconfig that is gone": {
			[]string{"cleanup", "--addon-namespace=x", "--managed-kubeconfig=/no/such/file"},
			exitError,
			"",
			"connecting: stat /no/such/file",
		},
		"outside of a pod, no other": {
			[]string{"cleanup", "--addon-namespace=x"},
			exitError,
			"",
			"connecting: finding the API server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			var out, err bytes.Buffer
			require.Equal(t, tc.code, run(t.Context(), tc.args, &out, &err))
			require.Contains(t, out.String(), tc.out)
			require.Contains(t, err.String(), tc.err)
		})
	}
}
