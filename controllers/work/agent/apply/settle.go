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

// step is what follows once the object of a task has been read.
type step int

const (
	// done: nothing is left to do.
	done step = iota
	// tell evaluates the rules for the object.
	tell
	// own writes only the owner of a resting object, and evaluates the rules.
	own
	// bring applies the manifest, and evaluates the rules.
	bring
)

// decideStep records the result of reading a task's object, and returns the next step. A
// read for the rules alone only affects Available.
func (t *Task) decideStep(live *unstructured.Unstructured, err error, now time.Time) step {
	t.Outcome.Available = status.Exists(live != nil)
	if err != nil {
		t.Outcome.Available = status.Unreadable(apply.Message(err, t.secret()))
	}
	switch {
	case t.Action == read && err != nil:
		t.Reading.recordFailure(apply.RetryAfter(err))
	case t.Action == read && t.Phase == resting:
		return own
	case t.Action == read:
		return tell
	case t.Action == tend && err != nil:
		t.recordFailure(now, apply.RetryAfter(err))
	case t.Action == tend:
		t.Repairs = 0
		return own
	case t.Action == look:
		if err != nil {
			t.Reading.fails++
		}
		t.recordRefusal()
	case err != nil:
		t.Reading.fails++
		t.setFailed(err, now)
	default:
		return bring
	}
	return done
}

// secret reports whether no value of the object may be disclosed.
func (t *Task) secret() bool {
	return manifest.IsSecret(t.Object.GetAPIVersion(), t.Object.GetKind())
}

// recordRefusal records why the agent does not apply a manifest.
func (t *Task) recordRefusal() {
	t.moveTo(refused)
	t.Outcome.Applied = status.Failed(t.Refusal.Error())
	if errors.As(t.Refusal, new(*ignore.Error)) {
		t.Outcome.Applied = status.IgnoreFieldsFailed(t.Refusal.Error())
	}
}

// recordKept records that the object is as the work, or an older one, declares it. It
// reports whether a change by others was undone for that.
func (t *Task) recordKept(result apply.Result) (repaired bool) {
	repaired = t.Action == repair && t.Rival == "" && result.Seen.Version != t.Result.Seen.Version
	if repaired {
		t.Repairs++
	} else if !t.hot(t.Looked) {
		t.Repairs = 0
	}
	t.moveTo(kept)
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
		note = "the change concerns an immutable field, so the object was deleted and created again"
	case apply.Installed(t.ID) && t.Options.Owned:
		note = "the namespace belongs to the installation and stays when the work goes"
	case t.hot(t.Looked):
		note = "others keep changing the object, so it is repaired at most every 10 s"
	case t.Shown.sight == drift.Blind:
		note = "the agent may not list and watch " + t.ID.GroupResource() + ", so that a change of the object is found within a minute only"
	}
	t.Outcome.Applied = status.Applied(note)
	return repaired
}

// setFailed records that an object could not be applied, and when it is tried again.
func (t *Task) setFailed(err error, now time.Time) {
	var denial *executor.DeniedError
	t.Outcome.Applied = status.Failed(apply.Message(err, t.secret()))
	switch {
	case errors.As(err, &denial):
		// The text is used verbatim, without a hint about the agent's rights.
		t.Outcome.Applied = status.Failed(denial.Error())
		t.Granted = false
		t.moveTo(denied)
		t.conceal(now)
	case errors.As(err, new(*ignore.Error)):
		t.Outcome.Applied = status.IgnoreFieldsFailed(err.Error())
		t.moveTo(blocked)
	case errors.As(err, new(*apply.ConflictError)), errors.As(err, new(*apply.DeletingError)):
		t.moveTo(blocked)
	default:
		t.recordFailure(now, apply.RetryAfter(err))
	}
}
