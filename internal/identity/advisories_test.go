// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
)

// CVE-2024-12401: the time to read PEM is quadratic in some inputs, and anyone can send a
// certificate request.
func TestCVE202412401ARequestIsReadInBoundedTime(t *testing.T) {
	const begin = "-----BEGIN CERTIFICATE REQUEST-----\n"
	for name, piece := range map[string]string{
		"beginnings without an end": "-----BEGIN ", "whole first lines": begin, "headers": begin + "a: b\n", "dashes": "-----",
		"ends": "-----END CERTIFICATE REQUEST-----\n", "lines": "\n", "colons": begin + strings.Repeat(":", 40) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{16 << 10, 1 << 20, 8 << 20} {
				start := time.Now()
				_, err := identity.ParseRequest([]byte(strings.Repeat(piece, size/len(piece))), "c1")
				require.ErrorIs(t, err, identity.ErrNoAgentRequest)
				require.Less(t, time.Since(start), time.Minute, "%d bytes", size)
			}
		})
	}
}
