// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandLine(t *testing.T) {
	complete := []string{"agent", "--hub-kubeconfig=/no/such/file", "--cluster-name=c1", "--addon-namespace=n"}
	for name, tc := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"help":            {[]string{"--help"}, exitOK, "usage: managed-serviceaccount agent [flags]", ""},
		"no command":      {complete[1:], exitUsage, "", "error: give the command agent"},
		"another command": {append([]string{"manager"}, complete[1:]...), exitUsage, "", "error: give the command agent"},
		"an unknown flag": {append([]string{"--hub"}, complete...), exitUsage, "", "error: unknown flag: --hub"},
		"nothing is said": {
			complete[:1], exitUsage, "",
			"error: --hub-kubeconfig: must be set\n--cluster-name: must be set\n--addon-namespace: must be set",
		},
		"a kubeconfig that is gone": {complete, exitError, "", "connecting to the hub: stat /no/such/file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OCM_ROOT", "")
			var out, err bytes.Buffer
			require.Equal(t, tc.code, run(t.Context(), tc.args, &out, &err))
			require.Contains(t, out.String(), tc.out)
			require.Contains(t, err.String(), tc.err)
		})
	}
}
