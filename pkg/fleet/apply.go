// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// apply applies objects in order and tells what happened to each. A definition
// is waited for until its kind is served. In a dry run it only asks.
func (r *run) apply(ctx context.Context, c *Cluster, objects []*unstructured.Unstructured) ([]Change, error) {
	var out []Change
	for _, u := range objects {
		change, err := r.applyOne(ctx, c, u)
		if err != nil {
			return out, explain("applying "+describe(u), c, err)
		}
		out = append(out, change)
		if u.GetKind() == "CustomResourceDefinition" && !r.common.reads() && change.Action != Unchanged {
			if err := r.established(ctx, c, u.GetName()); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// applyOne applies one object, or tells what applying it would do.
func (r *run) applyOne(ctx context.Context, c *Cluster, u *unstructured.Unstructured) (Change, error) {
	live, err := r.live(ctx, c, u)
	if err != nil {
		return Change{}, err
	}
	if live != nil && u.GetKind() == "Deployment" && len(foreign(live, u)) > 0 {
		if r.common.reads() {
			return Change{Object: reference(live), Action: Configured}, nil
		}
		if err := r.cleared(ctx, c, live, u); err != nil {
			return Change{}, err
		}
	}
	if r.common.reads() {
		return r.preview(ctx, c, u, live)
	}
	applied, err := r.patch(ctx, c, u, nil)
	if err != nil {
		return Change{}, err
	}
	return Change{Object: reference(applied), Action: actionOf(live, applied)}, nil
}

// live reads the object as it is, nil when it or its kind is not there.
func (r *run) live(ctx context.Context, c *Cluster, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := c.Client.Resource(resourceOf(u)).Namespace(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// preview tells what applying u would do, without writing.
func (r *run) preview(ctx context.Context, c *Cluster, u, live *unstructured.Unstructured) (Change, error) {
	if r.common.DryRun != DryRunServer && !r.common.Diff {
		return r.guess(u, live), nil
	}
	applied, err := r.patch(ctx, c, u, []string{metav1.DryRunAll})
	if apierrors.IsNotFound(err) {
		// Its namespace or kind would be made by this very run.
		return r.guess(u, live), nil
	}
	if err != nil {
		return Change{}, err
	}
	change := Change{Object: redact(clean(applied)), Action: Created, Live: redact(clean(live))}
	if r.common.Diff {
		change.Live, change.Object = maskedBelow(change.Live, change.Object)
	}
	if live != nil {
		change.Action = Configured
		if equality.Semantic.DeepEqual(clean(live).Object, clean(applied).Object) {
			change.Action = Unchanged
		}
	}
	return change, nil
}

// guess compares without the server: fields that u does not name are taken as
// they are.
func (r *run) guess(u, live *unstructured.Unstructured) Change {
	change := Change{Object: redact(u), Action: Created, Live: redact(clean(live))}
	if live != nil {
		change.Action = Configured
		if contains(live.Object, u.Object) {
			change.Action = Unchanged
		}
	}
	return change
}

// servedPause is how long to wait between tries of a kind that is just being
// served.
const servedPause = 200 * time.Millisecond

// patch sends the server-side apply. A definition that became established a
// moment ago may not be served yet; that is tried again for a while.
func (r *run) patch(ctx context.Context, c *Cluster, u *unstructured.Unstructured, dryRun []string) (*unstructured.Unstructured, error) {
	o := metav1.ApplyOptions{FieldManager: FieldManager, Force: true, DryRun: dryRun}
	client := c.Client.Resource(resourceOf(u)).Namespace(u.GetNamespace())
	applied, err := client.Apply(ctx, u.GetName(), u, o)
	for try := 0; try < 25 && dryRun == nil && isNoKind(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueNotFound); try++ {
		select {
		case <-ctx.Done():
			return nil, err
		case <-r.common.Clock.After(servedPause):
		}
		applied, err = client.Apply(ctx, u.GetName(), u, o)
	}
	return applied, err
}

// notThere is the version to apply an object with that must not be there yet.
const notThere = "0"

// overtaken tells that somebody else wrote or made an object after it was read.
// For one that was not there, and was to be made at the version notThere, the API
// server words that as a wrong version.
func overtaken(err error) bool {
	return apierrors.IsConflict(err) || (apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.resourceVersion"))
}

// tries bounds how often something is decided on anew because somebody else writes it
// at the same time.
const tries = 5

// again does what reads an object, decides, and writes it for the version that was
// read, and does it once more where it was overtaken: controllers write the status of
// most objects at any time, and none of that is a reason to trouble a person.
func again(do func() error) (err error) {
	for range tries {
		if err = do(); !overtaken(err) {
			return err
		}
	}
	return err
}

// busy is the error about an object that somebody writes again and again; other errors
// stay as they are.
func busy(u *unstructured.Unstructured, err error) error {
	if !overtaken(err) {
		return err
	}
	return &Error{Message: "somebody else writes " + describe(u) + " all the time", Fix: "look at it, then run this again", Err: err}
}

func actionOf(live, applied *unstructured.Unstructured) Action {
	switch {
	case live == nil || live.GetUID() != applied.GetUID():
		return Created
	case live.GetResourceVersion() == applied.GetResourceVersion(), equality.Semantic.DeepEqual(clean(live).Object, clean(applied).Object):
		// A new version whose content is the same only says who owns the fields.
		return Unchanged
	}
	return Configured
}

// established waits until a definition is served.
func (r *run) established(ctx context.Context, c *Cluster, name string) error {
	err := await.Objects(ctx, await.Query{Client: c.Client, Resource: definitions, Name: name, Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			return len(items) == 1 && conditionTrue(items[0], "Established"), nil
		})
	if err != nil {
		return r.expired(err, "customresourcedefinition/"+name, "the API server has not established it", "")
	}
	return nil
}

// clean returns a copy without what the server adds and nobody means.
func clean(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	out := u.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	if annotations := out.GetAnnotations(); annotations != nil {
		delete(annotations, "deployment.kubernetes.io/revision")
		out.SetAnnotations(annotations)
		if len(annotations) == 0 {
			unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
		}
	}
	return out
}

// contains tells whether live holds everything that want names. Lists must be
// of the same length, item by item.
func contains(live, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		for k, v := range w {
			if !contains(l[k], v) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return len(w) == 0 && live == nil
		}
		for i := range w {
			if !contains(l[i], w[i]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(live) == fmt.Sprint(want) || (live == nil && zero(want))
}

func zero(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case bool:
		return !x
	case int64:
		return x == 0
	}
	return false
}
