// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoopbackMeansThisMachine(t *testing.T) {
	for server, want := range map[string]bool{"https://127.0.0.1:6443": true, "https://localhost": true,
		"https://[::1]:1": true, "https://10.0.0.1": false,
		"https://hub": false, "://": false} {
		require.Equal(t, want, IsLoopback(server), server)
	}
}
