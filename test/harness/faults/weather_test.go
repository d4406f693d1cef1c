// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// answers sends requests through weather of a seed, and returns what came back.
func answers(t *testing.T, seed uint64, n int) (out []int, done map[string]int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	p, weather := &Process{}, NewWeather(seed)
	weather.Percent = 50
	weather.Over(p)
	client, err := rest.HTTPClientFor(p.On(&rest.Config{Host: server.URL}, "hub"))
	require.NoError(t, err)
	for range n {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL+"/x", strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := client.Do(request)
		if err != nil {
			require.ErrorIs(t, err, ErrCut)
			out = append(out, 0)
			continue
		}
		require.NoError(t, response.Body.Close())
		out = append(out, response.StatusCode)
	}
	return out, weather.Done()
}

func TestTheSameSeedMakesTheSameWeather(t *testing.T) {
	first, done := answers(t, 7, 60)
	again, _ := answers(t, 7, 60)
	other, _ := answers(t, 8, 60)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
	for _, kind := range []string{"cut", "lost", "409", "429", "500"} {
		require.Positive(t, done[kind], "%s never happens: %v", kind, done)
	}
}

func TestAStreamIsTruncatedRepeatedOrSlow(t *testing.T) {
	const events = `{"type":"ADDED","object":1}` + "\n" + `{"type":"MODIFIED","object":2}` + "\n" + `{"type":"DELETED","object":3}` + "\n"
	for kind, want := range map[string]string{
		"truncated":   events[:len(events)-15],
		"repeated":    strings.Replace(events, `{"type":"MODIFIED","object":2}`, `{"type":"MODIFIED","object":2}`+"\n"+`{"type":"MODIFIED","object":2}`, 1),
		"slow reader": events,
	} {
		t.Run(kind, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x?watch=true", nil)
			got, err := io.ReadAll(streamOf(io.NopCloser(strings.NewReader(events)), request, kind))
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		})
	}
}
