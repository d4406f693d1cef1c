// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestAProcessEndsWhenAFileAppearsChangesOrVanishes(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"appears": func(t *testing.T, dir string) { t.Helper(); write(t, dir, "absent", []byte("x")) },
		"changes": func(t *testing.T, dir string) { t.Helper(); write(t, dir, "present", []byte("y")) },
		"vanishes": func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(dir, "present")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, clk := t.TempDir(), clocktesting.NewFakeClock(epoch)
			write(t, dir, "present", []byte("x"))
			f := readFiles([]string{filepath.Join(dir, "present"), filepath.Join(dir, "absent")})
			write(t, dir, "present", []byte("x"))
			done := make(chan error, 1)
			go func() { done <- f.watch(t.Context(), clk) }()
			require.Eventually(t, clk.HasWaiters, longest, shortly)
			change(t, dir)
			clk.Step(filesEvery)
			require.IsType(t, changedFile(""), <-done)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, readFiles(nil).watch(ctx, clocktesting.NewFakeClock(epoch)))
}
