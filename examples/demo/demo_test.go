// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTextOfAPage(t *testing.T) {
	require.Equal(t, "Declared once | cluster: c1 | pod: web-1", text(`<!DOCTYPE html>
<html><head><title>no</title><style>body{}</style></head>
<body>
<h1>Declared once</h1>
<dl>
<dt>cluster</dt><dd>c1</dd>
<dt>pod</dt><dd>web-1</dd>
</dl>
</body></html>
`))
}

func TestTheDemoTypesWhatAUserWouldType(t *testing.T) {
	d := &demo{dir: t.TempDir()}
	var lines []string
	for _, s := range d.steps() {
		require.Equal(t, "kubectl", s.argv[0])
		lines = append(lines, strings.Join(s.argv, " "))
	}
	require.Equal(t, "kubectl ocm hub init --context hub", lines[0])
	require.Contains(t, lines, "kubectl ocm join cluster2 --context cluster2 --hub-context hub --accept")
	require.Contains(t, lines, "kubectl ocm work apply webdemo -f examples/webdemo/manifests.yaml -n default -c cluster1,cluster2 --context hub --wait")
}

func TestUnknownWordsAreAUsageError(t *testing.T) {
	require.Equal(t, 2, run(t.Context(), nil))
	require.Equal(t, 2, run(t.Context(), []string{"sideways"}))
}
