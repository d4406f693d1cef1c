// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply/ignore"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
)

// step is what follows once the object of a task was read.
type step int

const (
	// done: nothing, all is said.
	done step = iota
	// tell asks the rules about the object.
	tell
	// own writes no more than the owner of an object that rests, and tells.
	own
	// bring applies the manifest, and tells.
	bring
)

// settle notes what the read of its object says of a task, and what follows. A read
// for the rules alone concerns Available and nothing else.
func (t *Task) settle(live *unstructured.Unstructured, err error, now time.Time) step {
	t.Outcome.Available = status.Exists(live != nil)
	if err != nil {
		t.Outcome.Available = status.Unreadable(apply.Message(err, t.secret()))
	}
	switch {
	case t.Action == read && err != nil:
		t.Reading.unread(apply.RetryAfter(err))
	case t.Action == read && t.Stand == resting:
		return own
	case t.Action == read:
		return tell
	case t.Action == tend && err != nil:
		t.failed(now, apply.RetryAfter(err))
	case t.Action == tend:
		t.Repairs = 0
		return own
	case t.Action == look:
		if err != nil {
			t.Reading.fails++
		}
		t.refuse()
	case err != nil:
		t.Reading.fails++
		t.fail(err, now)
	default:
		return bring
	}
	return done
}

// secret tells whether no value of the object may be told.
func (t *Task) secret() bool {
	return manifest.IsSecret(t.Object.GetAPIVersion(), t.Object.GetKind())
}

// refuse notes why the agent does not apply a manifest.
func (t *Task) refuse() {
	t.to(refused)
	t.Outcome.Applied = status.Failed(t.Refusal.Error())
	if isIgnoreError(t.Refusal) {
		t.Outcome.Applied = status.IgnoreFieldsFailed(t.Refusal.Error())
	}
}

func isIgnoreError(err error) bool {
	var fault *ignore.Error
	return errors.As(err, &fault)
}

// keep notes an object that is as the work declares it, or as an older one does. It
// tells whether that took undoing what somebody else changed.
func (t *Task) keep(result apply.Result) (repaired bool) {
	repaired = t.Action == repair && t.Rival == "" && result.Seen.Version != t.Result.Seen.Version
	if repaired {
		t.Repairs++
	} else if !t.hot(t.Looked) {
		t.Repairs = 0
	}
	t.to(kept)
	t.Result = result
	t.Result.Live = nil
	t.Outcome.Available = status.Exists(result.Seen.UID != "")
	note := ""
	switch {
	case t.Rival != "":
		t.Outcome.Applied = status.Failed(errRival(t.Rival).Error())
		return repaired
	case result.Merged != "":
		note = "server-side apply refused the manifest (" + result.Merged + "), so a three-way merge patch was used"
	case result.Replaced:
		note = "the change is of a field that cannot be changed, so the object was deleted and made anew"
	case apply.Installed(t.ID) && t.Options.Owned:
		note = "the namespace belongs to the installation and stays when the work goes"
	case t.hot(t.Looked):
		note = "somebody else keeps changing the object, it is repaired at most every 10 s"
	case t.Shown.sight == drift.Blind:
		note = "the agent may not list and watch " + t.ID.GroupResource() + ", so that a change of the object is found within a minute only"
	}
	t.Outcome.Applied = status.Applied(note)
	return repaired
}

// fail notes an object that could not be applied, and so when it is tried again.
func (t *Task) fail(err error, now time.Time) {
	var conflict *apply.ConflictError
	var deleting *apply.DeletingError
	var denial *executor.DeniedError
	t.Outcome.Applied = status.Failed(apply.Message(err, t.secret()))
	switch {
	case errors.As(err, &denial):
		// To the letter, and without a hint for the agent.
		t.Outcome.Applied = status.Failed(denial.Error())
		t.Granted = false
		t.to(denied)
		t.conceal(now)
	case isIgnoreError(err):
		t.Outcome.Applied = status.IgnoreFieldsFailed(err.Error())
		t.to(blocked)
	case errors.As(err, &conflict), errors.As(err, &deleting):
		t.to(blocked)
	default:
		t.failed(now, apply.RetryAfter(err))
	}
}
