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

// DryRun says how far an operation goes.
type DryRun string

// The values of DryRun, as kubectl spells them.
const (
	// DryRunNone does the operation.
	DryRunNone DryRun = ""
	// DryRunClient builds the objects and sends reads only.
	DryRunClient DryRun = "client"
	// DryRunServer lets the API server judge the objects without storing them.
	DryRunServer DryRun = "server"
)

// StepState is the state of one step of an operation.
type StepState string

// The states of a step. Running may be reported many times with other details;
// the others end the step.
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
	// Detail is what a person may want to know; it may change while running.
	Detail string
	// Elapsed is the time since the operation began.
	Elapsed time.Duration
}

// Common holds what every changing operation takes.
type Common struct {
	// DryRun is DryRunNone for a real run.
	DryRun DryRun
	// Diff asks for the difference to what is there; nothing is written.
	Diff bool
	// Wait holds the operation until what it started has been reached.
	Wait bool
	// Timeout bounds the whole operation, waits included. 0 means 5 minutes.
	Timeout time.Duration
	// Progress receives steps, one after the other; nil means none.
	Progress func(Step)
	// Clock measures; nil means the machine's clock.
	Clock clock.WithTicker
	// Random makes tokens; nil means the system's source.
	Random io.Reader
}

// defaultTimeout is the deadline of an operation when none is given.
const defaultTimeout = 5 * time.Minute

// reads tells that nothing may be written.
func (o *Common) reads() bool { return o.DryRun != DryRunNone || o.Diff }

// begin fills the defaults and starts the one deadline of the operation.
func (o *Common) begin(ctx context.Context) (context.Context, context.CancelFunc, *run) {
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
	return ctx, cancel, &run{common: o, start: o.Clock.Now()}
}

// run is one operation under way.
type run struct {
	common *Common
	start  time.Time
	name   string
	// mu is held where several clusters tell at a time.
	mu sync.Mutex
}

func (r *run) now() time.Time { return r.common.Clock.Now() }

func (r *run) report(state StepState, detail string) {
	if r.common.Progress == nil || r.name == "" {
		return
	}
	r.common.Progress(Step{Name: r.name, State: state, Detail: detail, Elapsed: r.common.Clock.Since(r.start)})
	if state != Running {
		r.name = ""
	}
}

// step begins a step.
func (r *run) step(name string) {
	r.name = name
	r.report(Running, "")
}

// detail tells where the running step is.
func (r *run) detail(text string) { r.report(Running, text) }

// done ends the running step well.
func (r *run) done(detail string) { r.report(Done, detail) }

// warn ends the running step with something that deserves attention.
func (r *run) warn(detail string) { r.report(Warned, detail) }

// fail ends the running step and passes err on.
func (r *run) fail(err error) error {
	if err != nil {
		r.report(Broken, "")
	}
	return err
}

// remark reports one line outside of the running step.
func (r *run) remark(name, detail string) {
	if r.common.Progress != nil {
		r.common.Progress(Step{Name: name, State: Warned, Detail: detail, Elapsed: r.common.Clock.Since(r.start)})
	}
}
