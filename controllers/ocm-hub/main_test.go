// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALimitOfManifestsThatNoHubCanKeepIsRefused(t *testing.T) {
	for _, limit := range []string{"0", "-1", "1048577"} {
		cmd := command(io.Discard, io.Discard)
		cmd.SetArgs([]string{"run", "--manifestLimit=" + limit})
		require.ErrorContains(t, cmd.Execute(), "--manifestLimit="+limit+": must be 1 to 1048576 bytes")
	}
}

func TestPortsOfTheWebhookCommand(t *testing.T) {
	for given, want := range map[string]string{
		"--port=0":                 "--port=0: choose a port",
		"--port=8443":              "--port=8443 is that of health and metrics",
		"--health-probe-port=-1":   "--health-probe-port=-1: choose a port",
		"--health-probe-port=9443": "--port=9443 is that of health and metrics",
	} {
		cmd := command(io.Discard, io.Discard)
		cmd.SetArgs([]string{"webhook", "work", given})
		require.ErrorContains(t, cmd.Execute(), want)
	}
}
