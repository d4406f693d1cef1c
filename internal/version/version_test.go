// SPDX-License-Identifier: Apache-2.0

package version

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStampedVersionWins(t *testing.T) {
	old := stamped
	t.Cleanup(func() { stamped = old })
	stamped = "v9.8.7"
	require.Equal(t, "v9.8.7", Get())
}

func TestVersionFromModule(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"a released module":              {"v1.2.3", "v1.2.3"},
		"a pre-release":                  {"v1.2.3-rc.1", "v1.2.3-rc.1"},
		"a development build":            {"(devel)", dev},
		"no version":                     {"", dev},
		"a checkout with changes":        {"v1.2.3+dirty", dev},
		"a pseudo version without a tag": {"v0.0.0-20260101000000-0123456789ab", dev},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, fromModule(tc.in)) })
	}
}
