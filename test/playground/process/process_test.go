// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// reaperVariable turns this test binary into a reaper, victimVariable into its owner.
const (
	reaperVariable = "TEST_REAPER"
	victimVariable = "TEST_VICTIM"
)

const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(reaperVariable) != "" {
		if process.Reap(os.Stdin) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func start(t *testing.T, dir, name, script string) *process.Process {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	p, err := process.Start(process.Spec{Name: name, Dir: dir, Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	return p
}

func TestAProgramThatEndsTellsItsCodeAndTheEndOfItsLog(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		want   int
	}{
		"by itself":   {"echo farewell; exit 7", 7},
		"by a signal": {"echo farewell; kill -9 $$", 137},
		"at once":     {"echo farewell", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, t.TempDir(), "x", tc.script)
			<-p.Done()
			require.Equal(t, tc.want, p.ExitCode())
			require.ErrorContains(t, p.Failure(), "farewell")
		})
	}
}

// A program that ends before it is checked was still started.
func TestAProgramThatEndsAtOnceIsNoError(t *testing.T) {
	dir := t.TempDir()
	for range 50 {
		p, err := process.Start(process.Spec{Name: "x", Dir: dir, Path: "/bin/sh", Args: []string{"-c", ":"}})
		require.NoError(t, err)
		<-p.Done()
		require.Zero(t, p.ExitCode())
		require.NoError(t, p.Kill())
	}
}

func TestNothingOfTheEnvironmentIsInherited(t *testing.T) {
	t.Setenv("SECRET_OF_THE_STARTER", "x")
	p := start(t, t.TempDir(), "x", "env")
	<-p.Done()
	log, err := os.ReadFile(p.LogFile)
	require.NoError(t, err)
	require.NotContains(t, string(log), "SECRET_OF_THE_STARTER")
}

func TestEndAllEndsEveryGroupInEveryFolder(t *testing.T) {
	dir := t.TempDir()
	parent := start(t, dir, "parent", "sleep 1000 & echo $!; wait")
	deep := start(t, filepath.Join(dir, "a", "b"), "deep", "sleep 1000")
	var child string
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(parent.LogFile)
		child = strings.TrimSpace(string(log))
		return err == nil && child != ""
	}, patience, time.Millisecond)
	require.True(t, process.Alive(dir, "parent"))

	require.NoError(t, process.EndAll(dir))
	<-parent.Done()
	<-deep.Done()
	require.False(t, process.Alive(dir, "parent"))
	require.Eventually(t, func() bool { return !runs(t, child) }, patience, time.Millisecond, "the child of a group goes with it")
	require.NoFileExists(t, filepath.Join(dir, "a", "b", "deep.pid"))
}

// A PID that now belongs to another process is never touched.
func TestEndSparesAProcessThatStartedAtAnotherTime(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	stranger := start(t, other, "stranger", "sleep 1000")
	file, err := json.Marshal(map[string]any{"pid": stranger.PID(), "started": "another/moment"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.pid"), file, 0o600))
	require.False(t, process.Alive(dir, "old"))
	require.NoError(t, process.EndAll(dir))
	require.NoFileExists(t, filepath.Join(dir, "old.pid"))
	require.True(t, process.Alive(other, "stranger"))
}

func TestEndRefusesAPidFileThatNamesEverybody(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.pid"), []byte(`{"pid":-1,"started":"x"}`), 0o600))
	require.False(t, process.Alive(dir, "x"))
	require.NoError(t, process.End(dir, "x"), "what names no process is removed")
	require.NoFileExists(t, filepath.Join(dir, "x.pid"))
}

func TestAPausedProgramStandsStillUntilItIsResumed(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "x", "while :; do echo x; sleep 0.01; done")
	size := func() int64 {
		info, err := os.Stat(p.LogFile)
		require.NoError(t, err)
		return info.Size()
	}
	require.NoError(t, process.Signal(dir, "x", true))
	last := size()
	require.NoError(t, process.Signal(dir, "x", false))
	require.Eventually(t, func() bool { return size() > last }, patience, time.Millisecond)
	require.Error(t, process.Signal(dir, "nothing", true))
}

// A program can be paused whatever it is doing, including starting another one.
func TestAProgramThatStartsOthersIsPausedAtAnyMoment(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, "x", "while :; do /bin/true; done")
	for range 200 {
		require.NoError(t, process.Signal(dir, "x", true))
		require.NoError(t, process.Signal(dir, "x", false))
	}
}

func TestTailIsBoundedInLinesAndBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("first\n", 5000)+"last but one\nlast\n"), 0o600))
	require.Equal(t, "  last but one\n  last", process.Tail(path, 2))
	require.LessOrEqual(t, len(process.Tail(path, 100000)), 24<<10)
	require.Contains(t, process.Tail(path+"x", 2), "no such file")
}

func TestTheReaperEndsWhatAKilledOwnerLeft(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "owned")
	owner := exec.CommandContext(t.Context(), self, "-test.run=^TestOwner$")
	owner.Env = append(os.Environ(), victimVariable+"="+dir)
	out, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	t.Cleanup(func() { _ = owner.Process.Kill() })
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.True(t, process.Alive(dir, "child"))
	require.NoError(t, owner.Process.Kill())
	require.Eventually(t, func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	}, patience, 5*time.Millisecond)
}

// TestOwner is the owner that TestTheReaperEndsWhatAKilledOwnerLeft kills.
func TestOwner(t *testing.T) {
	dir := os.Getenv(victimVariable)
	if dir == "" {
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	reaper, err := process.NewReaper([]string{self}, []string{reaperVariable + "=1"})
	require.NoError(t, err)
	require.NoError(t, reaper.Watch(dir))
	start(t, dir, "child", "sleep 1000")
	_, err = os.Stdout.WriteString("ready\n")
	require.NoError(t, err)
	<-t.Context().Done()
}

func runs(t *testing.T, pid string) bool {
	t.Helper()
	state, err := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", pid).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}
