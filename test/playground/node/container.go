// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// Restarts back off: backoffFirst after the second end in a row, doubled each time, up to
// backoffMax. Running for backoffReset resets the back-off.
const (
	backoffFirst = time.Second
	backoffMax   = 30 * time.Second
	backoffReset = time.Minute
)

// container is one container of a pod over all its restarts. Only its worker accesses it,
// except for health, which probers report.
type container struct {
	spec *corev1.Container
	// dir holds pid file and root folder; log is the file of this run's output.
	dir, log string
	clock    clock.WithTicker
	// wake makes the worker sync again.
	wake func()

	running   *process.Process
	stopProbe context.CancelFunc
	started   time.Time
	// killAt is when a process that was asked to end is killed; zero if it was not asked.
	killAt time.Time
	last   *corev1.ContainerStateTerminated
	// restarts counts starts after the first. ends counts ends in a row.
	restarts  int32
	ends      int
	notBefore time.Time
	waiting   corev1.ContainerStateWaiting

	mu     sync.Mutex
	health health
}

// launch is what a container needs to start.
type launch struct {
	program string
	args    []string
	env     []string
	workDir string
	local   map[int32]int
}

// start runs the container's program and its probes.
func (c *container) start(ctx context.Context, l launch) error {
	running, err := process.Start(process.Spec{
		Name: "process", Dir: c.dir, LogFile: c.log,
		Path: l.program, Args: l.args, Env: l.env, WorkDir: l.workDir,
	})
	if err != nil {
		return err
	}
	if c.last != nil {
		c.restarts++
	}
	c.running, c.started, c.killAt = running, c.clock.Now(), time.Time{}
	c.updateHealth(func(h *health) { *h = initialHealth(c.spec) })
	ctx, c.stopProbe = context.WithCancel(ctx)
	p := prober{container: c.spec, local: l.local, clock: c.clock, report: c.updateHealth}
	go p.run(ctx)
	go func() {
		<-running.Done()
		c.wake()
	}()
	return nil
}

// updateHealth changes the container's health and wakes the worker.
func (c *container) updateHealth(change func(*health)) {
	c.mu.Lock()
	before := c.health
	change(&c.health)
	changed := before != c.health
	c.mu.Unlock()
	if changed {
		c.wake()
	}
}

func (c *container) known() health {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// terminate asks the process to end; it is killed after grace.
func (c *container) terminate(grace time.Duration) error {
	if c.running == nil || !c.killAt.IsZero() {
		return nil
	}
	c.killAt = c.clock.Now().Add(grace)
	return c.running.Terminate()
}

// observe notices the end of the process and enforces killAt.
func (c *container) observe() error {
	if c.running == nil {
		return nil
	}
	select {
	case <-c.running.Done():
		return c.ended()
	default:
	}
	if !c.killAt.IsZero() && !c.clock.Now().Before(c.killAt) {
		if err := c.running.Kill(); err != nil {
			return err
		}
		return c.ended()
	}
	return nil
}

// ended records how the process ended and when the next may start.
func (c *container) ended() error {
	now := c.clock.Now()
	code := c.running.ExitCode()
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.last = &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, Message: c.message(code),
		StartedAt: metav1.NewTime(c.started), FinishedAt: metav1.NewTime(now), ContainerID: c.id(),
	}
	if now.Sub(c.started) >= backoffReset {
		c.ends = 0
	}
	c.ends++
	c.notBefore = now.Add(backoff(c.ends))
	c.waiting = corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: fmt.Sprintf("restart in %s after %d ends in a row", backoff(c.ends), c.ends)}
	c.stopProbe()
	err := c.running.Kill() // it has ended; this removes the pid file
	c.running = nil
	return err
}

// message returns the termination message, according to the container's policy.
func (c *container) message(code int) string {
	path := c.spec.TerminationMessagePath
	if text, err := os.ReadFile(filepath.Join(c.dir, "root", filepath.Clean("/"+path))); path != "" && err == nil && len(text) > 0 {
		return string(text[:min(len(text), 4096)])
	}
	if code != 0 && c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		text := process.Tail(c.log, 20)
		return text[max(0, len(text)-2048):]
	}
	return ""
}

// backoff returns the delay after a number of ends in a row: none, 1 s, 2 s, 4 s ... 30
// s.
func backoff(ends int) time.Duration {
	if ends < 2 {
		return 0
	}
	return min(backoffMax, backoffFirst<<min(ends-2, 10))
}

// id returns the container ID of the process.
func (c *container) id() string { return fmt.Sprintf("process://%d", c.running.PID()) }

// succeeded reports whether the last run of the container succeeded.
func (c *container) succeeded() bool {
	return c.running == nil && c.last != nil && c.last.ExitCode == 0
}

// needsStart reports whether a container that does not run has to be started (again).
func (c *container) needsStart(policy corev1.RestartPolicy) bool {
	switch {
	case c.last == nil:
		return true
	case policy == corev1.RestartPolicyNever:
		return false
	case policy == corev1.RestartPolicyOnFailure:
		return c.last.ExitCode != 0
	default:
		return true
	}
}
