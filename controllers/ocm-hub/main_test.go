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
