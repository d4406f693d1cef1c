// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

const (
	// Repetitions is how often cheap operations are measured; the median counts.
	Repetitions = 5
	// Renewals is how many PUTs of a lease are one calibration.
	Renewals = 1000
	// hashes of blocks make up one run of the CPU-bound loop.
	hashes, block = 1000, 64 << 10
)

// Sized returns whole for a full run, and part for a shortened one.
func Sized[T any](whole, part T) T {
	if testing.Short() {
		return part
	}
	return whole
}

// CPU returns how long a CPU-bound loop takes on one core: SHA-256 of 64 MiB, the median
// of five runs.
func CPU(t testing.TB) time.Duration {
	t.Helper()
	data := make([]byte, block)
	var took []time.Duration
	for range Repetitions {
		began := time.Now()
		for range hashes {
			sum := sha256.Sum256(data)
			copy(data, sum[:])
		}
		took = append(took, time.Since(began))
	}
	t.Logf("calibration: SHA-256 of 64 MiB takes %s on one core", round(Median(took)))
	return Median(took)
}

// LeasePuts returns how long 1,000 PUTs of one lease take, one after the other, in
// protobuf on one warm connection, extrapolated from the median of five parts.
func LeasePuts(t testing.TB, config *rest.Config) time.Duration {
	t.Helper()
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := coordinationclient.NewForConfig(binary)
	require.NoError(t, err)
	leases := client.Leases(metav1.NamespaceDefault)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: "calibration-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	var took []time.Duration
	for range Repetitions {
		began := time.Now()
		for range Renewals / Repetitions {
			now := metav1.NewMicroTime(time.Now())
			lease.Spec.RenewTime = &now
			lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		took = append(took, time.Since(began)*Repetitions)
	}
	require.NoError(t, leases.Delete(t.Context(), lease.Name, metav1.DeleteOptions{}))
	t.Logf("calibration: 1,000 PUTs of a lease take %s", round(Median(took)))
	return Median(took)
}

// Processes returns the PIDs of the processes that run a program.
func Processes(t testing.TB, program string) []int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	var out []int
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != program {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		require.NoError(t, err)
		out = append(out, pid)
	}
	return out
}

// MemoryOf reads the memory of a process.
func MemoryOf(t testing.TB, pid int) memory.Usage {
	t.Helper()
	u, err := memory.Of(pid)
	require.NoError(t, err)
	return u
}

// clockTick is the unit of /proc/PID/stat.
const clockTick = 10 * time.Millisecond

// CPUTime returns the CPU time of a process, in user and system mode.
func CPUTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	used, err := CPUTimeOf(pid)
	require.NoError(t, err)
	return used
}

// CPUTimeOf does the same for a process that may have ended.
func CPUTimeOf(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	// The name of the program is in brackets and may contain spaces; utime and stime are
	// the 12th and 13th fields after it.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	const behind = 13
	if len(fields) < behind {
		return 0, fmt.Errorf("reading %s: it has %d fields after the name", path, len(fields))
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return time.Duration(user+system) * clockTick, nil
}

// Rests waits until a process rests, and returns the time since began. It rests from the
// start of the first two seconds in which it uses less than a twentieth of one core.
func Rests(t testing.TB, pid int, began time.Time) time.Duration {
	t.Helper()
	const look, quiet, part = 200 * time.Millisecond, 2 * time.Second, 20
	start, at := CPUTime(t, pid), time.Now()
	for {
		<-time.After(look)
		now := CPUTime(t, pid)
		switch {
		case now-start >= quiet/part:
			start, at = now, time.Now()
		case time.Since(at) >= quiet:
			return at.Sub(began)
		}
	}
}
