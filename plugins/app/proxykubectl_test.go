// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnInterruptThatArrivesAfterKubectlHasEnded: an interrupt of a terminal ends kubectl, whose exit code may be here before
// the interrupt is. What is asked about the cluster then is cut off, and is not why kubectl failed.
func TestAnInterruptThatArrivesAfterKubectlHasEnded(t *testing.T) {
	s := newScene(t)
	dir := t.TempDir()
	ended := filepath.Join(dir, "ended")
	script := "#!/bin/sh\n: > '" + ended + "'; exit 9\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700)) //nolint:gosec // it is run
	s.env["PATH"], s.env["XDG_RUNTIME_DIR"] = dir, dir
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var asked atomic.Bool
	answer := s.hub.Config.Handler
	s.hub.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(ended); err == nil {
			asked.Store(true)
			interrupt()
			<-r.Context().Done()
			return
		}
		answer.ServeHTTP(w, r)
	})
	got := s.runUntil(ctx, "", "proxy", "kubectl", "--context", "hub", "-c", "cluster1", "--", "get", "pods")
	require.True(t, asked.Load(), "nobody asks whether the cluster can be reached")
	require.Equal(t, 9, got.code, got.err)
	require.Empty(t, got.err)
}
