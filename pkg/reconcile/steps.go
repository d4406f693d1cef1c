// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Step is one write of a plan in which the order matters beyond what Plan keeps
// by itself: each is made only after those before it have succeeded.
type Step struct {
	// Target is the object. UID and Version are what it must be; both are empty
	// for an object that an earlier step of the plan has created. After a step the
	// version that it left counts.
	Target Target
	// Create is the object to make, unless nil. One that is there is an error.
	Create Object
	// Patch is a JSON merge patch, without uid and resourceVersion, unless empty.
	Patch map[string]any
	// Subresource that the patch goes to; empty is the object itself.
	Subresource string
}

// OnStep sets what is told of each step that was carried out: the object as it is
// now, or nil once it is deleted. It is called by whoever executes the plan, before
// the next step.
func (e *Executor) OnStep(told func(at Target, live *unstructured.Unstructured)) { e.told = told }

// steps carries out steps until one fails. An object that is not what the step
// says is a conflict.
func (e *Executor) steps(ctx context.Context, list []Step) error {
	type left struct {
		uid     types.UID
		version string
	}
	written := map[Target]left{}
	for _, s := range list {
		at := Target{Resource: s.Target.Resource, Namespace: s.Target.Namespace, Name: s.Target.Name}
		if l, ok := written[at]; ok {
			s.Target.UID, s.Target.Version = l.uid, l.version
		}
		live, err := e.step(ctx, s)
		if apierrors.IsNotFound(err) && e.told != nil && s.Create == nil {
			// A cache that never had the object will not tell that it is gone.
			e.told(at, nil)
		}
		if err != nil {
			return stale(s, err)
		}
		if live != nil {
			written[at] = left{live.GetUID(), live.GetResourceVersion()}
		}
		if e.told != nil {
			e.told(at, live)
		}
	}
	return nil
}

// step makes one write, and returns what is there now; nil after a deletion.
func (e *Executor) step(ctx context.Context, s Step) (*unstructured.Unstructured, error) {
	switch {
	case s.Create != nil:
		u, err := typed.ToUnstructured(s.Create)
		if err != nil {
			return nil, err
		}
		live, err := e.client.Resource(s.Target.Resource).Namespace(s.Target.Namespace).
			Create(ctx, u, metav1.CreateOptions{FieldManager: e.Manager()})
		if err != nil {
			return nil, fmt.Errorf("creating %s: %w", s.Target, err)
		}
		return live, nil
	case len(s.Patch) > 0:
		return e.patchStep(ctx, s)
	}
	return nil, Delete(ctx, e.client, s.Target)
}

// patchStep sends the patch of a step.
func (e *Executor) patchStep(ctx context.Context, s Step) (*unstructured.Unstructured, error) {
	body := maps.Clone(s.Patch)
	meta, _ := body["metadata"].(map[string]any)
	if meta = maps.Clone(meta); meta == nil {
		meta = map[string]any{}
	}
	meta["uid"], meta["resourceVersion"] = string(s.Target.UID), s.Target.Version
	body["metadata"] = meta
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of %s: %w", s.Target, err)
	}
	var sub []string
	if s.Subresource != "" {
		sub = []string{s.Subresource}
	}
	live, err := e.client.Resource(s.Target.Resource).Namespace(s.Target.Namespace).
		Patch(ctx, s.Target.Name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: e.Manager()}, sub...)
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", s.Target, err)
	}
	return live, nil
}

// stale makes a conflict of the error that the object of a patch is gone: it is not
// what the plan was made for.
func stale(s Step, err error) error {
	if t := s.Target; len(s.Patch) > 0 && s.Create == nil && apierrors.IsNotFound(err) {
		return apierrors.NewConflict(schema.GroupResource{Group: t.Resource.Group, Resource: t.Resource.Resource}, t.Name, err)
	}
	return err
}
