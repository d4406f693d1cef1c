// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/rand"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// DryRun is how far an operation goes.
type DryRun string

// The values of DryRun, as kubectl spells them.
const (
	// DryRunNone does the operation.
	DryRunNone DryRun = ""
	// DryRunClient builds the objects and sends reads only.
	DryRunClient DryRun = "client"
	// DryRunServer has the API server check the objects without storing them.
	DryRunServer DryRun = "server"
)

// StepState is the state of one step of an operation.
type StepState string

// The states of a step. Running may be reported many times with other details; each of the
// others ends the step.
const (
	Running StepState = "running"
	Done    StepState = "done"
	Warned  StepState = "warned"
	Broken  StepState = "failed"
	Skipped StepState = "skipped"
)

// Step is one line of progress.
type Step struct {
	// Name is constant over the life of the step.
	Name string
	// State is where the step is.
	State StepState
	// Detail is extra information; it may change while the step is running.
	Detail string
	// Fix is what helps with a step that ends with a warning; nil for nothing.
	Fix Fix
	// Elapsed is the time since the operation began.
	Elapsed time.Duration
}

// Common are the options of every operation that makes changes.
type Common struct {
	// DryRun is DryRunNone for a real run.
	DryRun DryRun
	// Diff requests the difference to the live objects; nothing is written.
	Diff bool
	// Wait makes the operation wait until the wanted state is reached.
	Wait bool
	// Timeout bounds the whole operation, waits included. 0 means 5 minutes.
	Timeout time.Duration
	// Progress receives steps one at a time; it may be nil.
	Progress func(Step)
	// Clock measures time; nil means the real clock.
	Clock clock.WithTicker
	// Random is the source for tokens; nil means the system's source.
	Random io.Reader
}

// defaultTimeout is the deadline of an operation when none is given.
const defaultTimeout = 5 * time.Minute

// Reads reports whether nothing may be written.
func (o *Common) Reads() bool { return o.DryRun != DryRunNone || o.Diff }

// Begin fills in the defaults and starts the one deadline of the operation.
func (o *Common) Begin(ctx context.Context) (context.Context, context.CancelFunc, *Run) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	return ctx, cancel, &Run{Given: o, Start: o.Clock.Now()}
}

// Run is one operation in progress.
type Run struct {
	// Given are the caller's options, with defaults filled in.
	Given *Common
	// Start is when it began.
	Start time.Time
	name  string
	// mu serializes reports of several clusters.
	mu sync.Mutex
}

// Now returns the time by the clock of the operation.
func (r *Run) Now() time.Time { return r.Given.Clock.Now() }

func (r *Run) report(state StepState, detail string, fix Fix) {
	if r.Given.Progress == nil || r.name == "" {
		return
	}
	r.Given.Progress(Step{Name: r.name, State: state, Detail: detail, Fix: fix, Elapsed: r.Given.Clock.Since(r.Start)})
	if state != Running {
		r.name = ""
	}
}

// Step begins a step.
func (r *Run) Step(name string) {
	r.name = name
	r.report(Running, "", nil)
}

// Detail reports the progress of the running step.
func (r *Run) Detail(text string) { r.report(Running, text, nil) }

// Done ends the running step with success.
func (r *Run) Done(detail string) { r.report(Done, detail, nil) }

// Warn ends the running step with a warning, and what helps.
func (r *Run) Warn(detail string, fix Fix) { r.report(Warned, detail, fix) }

// Fail ends the running step with failure and returns err.
func (r *Run) Fail(err error) error {
	if err != nil {
		r.report(Broken, "", nil)
	}
	return err
}

// Remark reports one line outside of the running step.
func (r *Run) Remark(name, detail string) {
	if r.Given.Progress != nil {
		r.Given.Progress(Step{Name: name, State: Warned, Detail: detail, Elapsed: r.Given.Clock.Since(r.Start)})
	}
}
