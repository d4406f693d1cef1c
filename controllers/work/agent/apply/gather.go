// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// gather reads the input of a pass. It only makes discovery requests, for kinds that are
// not known yet.
func (c *Controller) gather(ctx context.Context, work *workv1.ManifestWork, r *record) State {
	s := State{
		Now: c.c.Clock.Now(), Work: work, Removed: r.removed, Read: r.read, Owed: r.owed,
		Applied: c.c.Applied.Get(c.c.Applied.Identity.Name(work.Name)),
	}
	s.Adopted = s.Applied != nil && c.c.Applied.AdoptedFor(s.Applied, work)
	if s.Applied == nil {
		s.Inherited = c.c.Applied.Inherited(work.Name)
	}
	s.WentBack = ledger.WentBack(s.Applied, ledger.SightingOf(work))
	var executorErr error
	s.Executor, executorErr = executor.Of(work.Spec.Executor)
	named, nameless := r.remembered(s.Applied)
	for i := range work.Spec.Workload.Manifests {
		m := c.resolve(ctx, work, work.Spec.Workload.Manifests[i].Raw)
		if executorErr != nil {
			m.Refusal = executorErr
		}
		if m.Err != nil || m.MapErr != nil {
			m.Before = nameless[withoutPlace(m.Head)]
		} else if before := named[apply.IDOf(m.Mapping.Resource, m.Object.GetNamespace(), m.Object.GetName())]; before != nil {
			m.Before, m.Shown = before, c.view(*before)
		}
		s.Manifests = append(s.Manifests, m)
	}
	s.Inhabited = c.inhabited(s)
	return s
}

// remembered returns the items of the last pass, by object, and by its metadata where the
// manifest names no object. Where several manifests concern one object, it is the first
// that applies it. Objects that another record held are not known.
func (r *record) remembered(applied *workv1.AppliedManifestWork) (map[apply.ID]*Item, map[workv1.ManifestResourceMeta]*Item) {
	named, nameless := map[apply.ID]*Item{}, map[workv1.ManifestResourceMeta]*Item{}
	for i := range r.items {
		switch item := &r.items[i]; {
		case !item.Phase.names():
			nameless[withoutPlace(item.Meta)] = item
		case applied != nil && applied.UID == r.owner && named[item.ID] == nil:
			named[item.ID] = item
		}
	}
	return named, nameless
}

// inhabited returns, for each namespace that the work no longer declares and that others
// have objects in, why it stays.
func (c *Controller) inhabited(s State) map[string]string {
	if s.Applied == nil {
		return nil
	}
	out := map[string]string{}
	for _, recorded := range slices.Concat(s.Owed, s.Applied.Status.AppliedResources) {
		if !apply.IsNamespace(apply.RecordedID(recorded)) || slices.ContainsFunc(s.Manifests, func(m Manifest) bool {
			return m.Head.Group == "" && m.Head.Kind == "Namespace" && m.Head.Name == recorded.Name
		}) {
			continue
		}
		if why := c.c.Applied.Inhabited(recorded.Name, s.Work.Name, c.c.Works.Ending); why != "" {
			out[recorded.Name] = why
		}
	}
	return out
}

func withoutPlace(m workv1.ManifestResourceMeta) workv1.ManifestResourceMeta {
	m.Ordinal, m.Resource = 0, ""
	return m
}

// resolve decodes a manifest, finds its resource and picks its options.
func (c *Controller) resolve(ctx context.Context, work *workv1.ManifestWork, raw []byte) Manifest {
	m := Manifest{Raw: raw}
	m.Object, m.Err = manifest.Decode(raw)
	if m.Err != nil {
		m.Head = headOf(manifest.Head(raw))
		return m
	}
	gvk := m.Object.GroupVersionKind()
	m.Head = headOf(gvk, m.Object.GetNamespace(), m.Object.GetName())
	if m.Mapping, m.MapErr = c.c.Mapper.Resource(ctx, gvk); m.MapErr != nil {
		return m
	}
	if m.Err = manifest.Clean(m.Object, m.Mapping.Namespaced); m.Err != nil {
		return m
	}
	id := apply.IDOf(m.Mapping.Resource, m.Object.GetNamespace(), m.Object.GetName())
	m.Options, m.Refusal = apply.OptionsFor(&work.Spec, id)
	m.Rules = apply.RulesFor(&work.Spec, id)
	m.Rival = c.rival(work.Name, objectOf(m.Head), id, m.Options)
	return m
}

// rival returns the older work that declares the object with other content and writes it
// under the same field manager. Works that only create or read do not compete, and
// different field managers resolve conflicts through server-side apply.
func (c *Controller) rival(work string, object ledger.Object, id apply.ID, mine apply.Options) string {
	if !writes(mine) {
		return ""
	}
	for _, r := range c.c.Works.Claims.Rivals(work, object) {
		theirs, err := apply.OptionsFor(&workv1.ManifestWorkSpec{ManifestConfigs: r.Configs}, id)
		if err == nil && writes(theirs) && theirs.Manager == mine.Manager {
			return r.Work
		}
	}
	return ""
}

func writes(o apply.Options) bool {
	return o.Strategy == workv1.UpdateStrategyTypeUpdate || o.Strategy == workv1.UpdateStrategyTypeServerSideApply
}

func errRival(rival string) error {
	return fmt.Errorf("the older ManifestWork %s declares this object with different content, which takes precedence; "+
		"declare it in one work only, or identically in both", rival)
}

// headOf names an object as the status does, also that of a manifest that cannot be
// decoded, so that it is not mistaken for one that is no longer declared.
func headOf(gvk schema.GroupVersionKind, namespace, name string) workv1.ManifestResourceMeta {
	return workv1.ManifestResourceMeta{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: namespace, Name: name}
}
