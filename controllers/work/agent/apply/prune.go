// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// reasonPruneFailed is that of the Event about objects that cannot be removed.
	reasonPruneFailed = "PruneFailed"
	// leftoverBegin begins the part of the condition Applied about them.
	leftoverBegin = "; objects that the work no longer declares could not be removed: "
)

// prune finds the recorded objects that are no longer declared. An object whose manifest
// cannot be resolved at the moment stays. So does everything when the work declares
// nothing at all: admission refuses such a work, so it is damaged, and a user who wants
// all objects removed deletes the work.
func (p *Plan) prune(s State, declared map[apply.ID]bool) {
	if s.Applied == nil {
		return
	}
	p.HeldFor = cmp.Or(s.Applied.Annotations[workv1.AnnotationRemovalHeld], s.WentBack)
	undeclared := 0
	seen := map[apply.ID]bool{}
	for _, recorded := range slices.Concat(s.Owed, s.Applied.Status.AppliedResources) {
		id := apply.RecordedID(recorded)
		if seen[id] || declared[id] {
			continue
		}
		seen[id] = true
		undeclared++
		if unresolved(s.Manifests, id) {
			continue
		}
		keep := !apply.Owned(s.Work.Spec.DeleteOption, id)
		if why := s.Inhabited[id.Name]; why != "" && !keep && apply.IsNamespace(id) {
			keep, p.Inhabited = true, append(p.Inhabited, why)
		}
		if p.HeldFor != "" && !keep {
			p.Held = append(p.Held, recorded)
			continue
		}
		if rest := lookEvery - s.Now.Sub(s.Removed); rest > 0 {
			p.Pending = append(p.Pending, recorded)
			p.later(rest)
			continue
		}
		p.Remove = append(p.Remove, apply.Removal{Recorded: recorded, Owner: apply.OwnerOf(s.Applied), Keep: keep})
	}
	p.planHoldNote(s, undeclared)
}

// planHoldNote plans the note that holds removals. Where the work declares everything
// that is recorded, hub and cluster agree, and nothing is held.
func (p *Plan) planHoldNote(s State, undeclared int) {
	marked := s.Applied.Annotations[workv1.AnnotationRemovalHeld] != ""
	p.Mark, p.Unmark = p.HeldFor != "" && undeclared > 0 && !marked, marked && undeclared == 0
	if undeclared == 0 {
		p.HeldFor = ""
	}
}

// unresolved reports whether a manifest that could not be resolved may concern the
// object. Without any manifests that holds for every object.
func unresolved(manifests []Manifest, id apply.ID) bool {
	return len(manifests) == 0 || slices.ContainsFunc(manifests, func(m Manifest) bool {
		return (m.Err != nil || m.MapErr != nil) && m.Head.Group == id.Group && m.Head.Name == id.Name &&
			(m.Head.Namespace == id.Namespace || id.Namespace == "")
	})
}

// remove deletes what the work no longer declares, last rank first.
func (p *pass) remove(ctx context.Context) error {
	if len(p.plan.Remove) == 0 {
		return nil
	}
	p.record.removed = p.c.Clock.Now()
	p.pending = slices.Concat(p.plan.Pending, p.plan.Held)
	removals := slices.Clone(p.plan.Remove)
	slices.SortStableFunc(removals, func(a, b apply.Removal) int {
		return manifest.RankResource(b.Recorded.Resource) - manifest.RankResource(a.Recorded.Resource)
	})
	var errs []error
	for _, r := range removals {
		r.Wanted = p.c.Works.Claims.Wanted(p.work.Name, r.Recorded)
		pending, err := p.applier.Remove(ctx, r)
		if pending {
			p.pending = append(p.pending, r.Recorded)
		}
		if err != nil {
			errs = append(errs, errors.New(apply.Message(err, r.Recorded.Group == "" && r.Recorded.Resource == "secrets")))
		}
	}
	if len(errs) > 0 {
		p.leftover = errs[0].Error()
		if more := len(errs) - 1; more > 0 {
			p.leftover += fmt.Sprintf("; and %d more", more)
		}
	}
	return errors.Join(errs...)
}

// setLeftoverMessage adds to the work's condition Applied what could not be removed, or
// that nothing is removed because the work is empty.
func (p *pass) setLeftoverMessage(next *workv1.ManifestWorkStatus) {
	if p.applied == nil {
		return // nothing was ever recorded
	}
	generation, now := p.state.Work.Generation, p.c.Clock.Now()
	if kept := len(p.applied.Status.AppliedResources); len(p.state.Manifests) == 0 && kept > 0 {
		reconcile.SetCondition(&next.Conditions, metav1.Condition{
			Type: workv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: workv1.ReasonAppliedManifestWorkFailed, ObservedGeneration: generation,
			Message: fmt.Sprintf(
				"%s: it declares no manifests any more, so that its %d objects are kept; delete the work to remove them, or declare them again",
				workv1.MessageWorkFailed, kept,
			),
		}, now)
		return
	}
	// Removals that this pass put off have failed as they did before.
	message := p.leftover
	was := apimeta.FindStatusCondition(p.work.Status.Conditions, workv1.ConditionApplied)
	if message == "" && len(p.plan.Pending) > 0 && was != nil {
		_, message, _ = strings.Cut(was.Message, leftoverBegin)
	}
	if c := apimeta.FindStatusCondition(next.Conditions, workv1.ConditionApplied); c != nil && message != "" {
		said := *c
		said.Message += leftoverBegin + message
		reconcile.SetCondition(&next.Conditions, said, now)
	}
}

// announceLeftover sends an Event when objects cannot be removed, once for each
// cause.
func (p *pass) announceLeftover(ctx context.Context, before workv1.ManifestWorkStatus) {
	was := apimeta.FindStatusCondition(before.Conditions, workv1.ConditionApplied)
	if p.leftover == "" || (was != nil && strings.HasSuffix(was.Message, leftoverBegin+p.leftover)) {
		return
	}
	p.warn(ctx, reasonPruneFailed, "Prune", strings.TrimPrefix(leftoverBegin, "; ")+p.leftover)
}
