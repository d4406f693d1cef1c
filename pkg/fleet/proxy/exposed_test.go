// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestHowAServiceIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Service{
		"apps/web":            {Namespace: "apps", Name: "web"},
		"web":                 {Namespace: "given", Name: "web"},
		"apps/web:80":         {Namespace: "apps", Name: "web", Port: 80},
		"apps/http:web":       {Namespace: "apps", Name: "web", Protocol: "http"},
		"apps/https:web:8443": {Namespace: "apps", Name: "web", Protocol: "https", Port: 8443},
		"apps/http:80":        {Namespace: "apps", Name: "http", Port: 80},
		"apps/http":           {Namespace: "apps", Name: "http"},
	} {
		got, ok := ParseService("given", text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
		again, ok := ParseService("", got.String())
		require.True(t, ok, text)
		require.Equal(t, want, again, text)
	}
	for _, text := range []string{"", "/", "a/", "/web", "a/b/c", "A/b", "../x", "a/b:", "a/b:0", "a/b:x", "a/ftp:b:21", "a/http:", "a/http:b:99999"} {
		_, ok := ParseService("", text)
		require.False(t, ok, text)
	}
	_, ok := ParseService("", "web")
	require.False(t, ok, "no namespace is known")
}

func TestWhatIsLeftOutIsWhatTheListHas(t *testing.T) {
	t.Parallel()
	exposed := []Service{
		{Namespace: "a", Name: "one", Port: 80, Protocol: "http"},
		{Namespace: "a", Name: "secure", Port: 443},
		{Namespace: "a", Name: "any"},
		{Namespace: "a", Name: "two", Port: 1, Protocol: "http"}, {Namespace: "a", Name: "two", Port: 2, Protocol: "https"},
	}
	for text, want := range map[string]string{
		"a/one": "a/http:one:80", "a/one:80": "a/http:one:80", "a/http:one": "a/http:one:80", "a/secure": "a/https:secure:443",
		"a/http:secure": "a/http:secure:443", "a/any:9": "a/https:any:9", "a/two:1": "a/http:two:1", "a/https:two": "a/https:two:2",
		"a/any": "which port", "a/two": "which port", "b/one": "not expose", "a/one:81": "not expose", "a/https:one": "not expose",
	} {
		asked, ok := ParseService("", text)
		require.True(t, ok)
		got, err := asked.choose(&fleet.Cluster{}, "c1", "agents", exposed)
		if err != nil {
			require.ErrorContains(t, err, want, text)
			continue
		}
		require.Equal(t, want, got.String(), text)
	}
}
