// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryLineOfTheThreatModelNamesTestsThatExist(t *testing.T) {
	named, shown := namer{}, 0
	for _, r := range rowsOf(t, "security.md", "| what holds |") {
		found := named.check(t, r)
		if r.tests == "by design" {
			require.False(t, strings.HasPrefix(r.what, "cannot"), "%q is only claimed", r.what)
			continue
		}
		require.NotEmpty(t, found, "%q names no test", r.what)
		shown += len(found)
	}
	require.Greater(t, shown, 50)
}
