// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// packed returns what a server sends of a program.
func packed(t *testing.T, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// from starts a server, and returns a download of two programs from it.
func from(t *testing.T, handler http.HandlerFunc) Download {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	pinOf := func(name string) pin {
		sum := sha256.Sum256([]byte("program " + name))
		return pin{name: name, sum: hex.EncodeToString(sum[:]), size: int64(len("program " + name))}
	}
	return Download{From: server.URL + "/files/", Into: filepath.Join(t.TempDir(), "cache"), pins: []pin{pinOf("a"), pinOf("b")}}
}

func TestProgramsAreDownloadedOnce(t *testing.T) {
	platform := "-" + runtime.GOOS + "-" + runtime.GOARCH + ".gz"
	var requests atomic.Int32
	d := from(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/files/"), platform)
		_, _ = w.Write(packed(t, "program "+name)) // the client sees what is missing
	})
	require.NoError(t, os.MkdirAll(d.Into, 0o700))
	dead, alive := filepath.Join(d.Into, "a.1"+unfinished), filepath.Join(d.Into, "a.2"+unfinished)
	for _, part := range []string{dead, alive} {
		require.NoError(t, os.WriteFile(part, nil, 0o600))
	}
	require.NoError(t, os.Chtimes(dead, time.Time{}, time.Now().Add(-time.Hour)))
	var told []int64
	d.Progress = func(done, total int64) { told = append(told, done, total) }
	require.NoError(t, d.Fetch(t.Context(), "a", "b"))
	require.Equal(t, []int64{9, 18, 18, 18}, told)
	require.NoFileExists(t, dead, "its download was killed")
	require.FileExists(t, alive, "another download writes it")
	for _, name := range []string{"a", "b"} {
		info, err := os.Stat(filepath.Join(d.Into, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	}
	require.NoError(t, os.WriteFile(filepath.Join(d.Into, "b"), []byte("program c"), 0o600))
	require.NoError(t, d.Fetch(t.Context(), "a", "b"))
	require.EqualValues(t, 3, requests.Load(), "only what is not right is fetched again")
}

func TestNothingButTheRightProgramIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"another program": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed(t, "program x")) }, "is not the program that this release names"},
		"a longer one":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed(t, "program and more")) }, "is not the program"},
		"a shorter one":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed(t, "program")) }, "is not the program"},
		"cut short":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed(t, "program a")[:20]) }, "unexpected EOF"},
		"not compressed":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>please log in</html>")) }, "is no compressed file"},
		"not there":       {http.NotFound, "answers 404 Not Found"},
		"silent": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "nothing arrived for 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			d := from(t, tc.handler)
			if name == "silent" {
				d.patience = 100 * time.Millisecond
			}
			require.ErrorContains(t, d.Fetch(t.Context(), "a"), tc.want)
			left, err := os.ReadDir(d.Into)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestWhatIsNotPublishedIsNotAskedFor(t *testing.T) {
	d := from(t, func(http.ResponseWriter, *http.Request) { t.Error("a request") })
	require.ErrorIs(t, d.Fetch(t.Context(), "a", "c"), errNotPublished)
	for _, bad := range []string{"", "here", "ftp://here/x", "https:///x", "https://%"} {
		require.Error(t, CheckSource(bad), bad)
	}
	require.NoError(t, CheckSource(Release))
	require.NoError(t, CheckSource("http://127.0.0.1:1"))
}

func TestTheChecksumsNameAControlPlane(t *testing.T) {
	platforms := map[string]int{}
	for line := range strings.Lines(checksums) {
		fields := strings.Fields(line)
		require.Len(t, fields, 3)
		require.Len(t, fields[0], 2*sha256.Size)
		platforms[filepath.Dir(fields[2])]++
	}
	require.Len(t, platforms, 2)
	for platform, n := range platforms {
		require.Equal(t, 4, n, platform)
		for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
			_, err := Download{pins: pinned(checksums, platform)}.pinOf(name)
			require.NoError(t, err)
		}
	}
}
