// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// All applies objects in order and returns what happened to each. After a definition it waits
// until the kind is served. In a dry run nothing is stored.
func All(ctx context.Context, r *fleet.Run, c *fleet.Cluster, objects []*unstructured.Unstructured) ([]fleet.Change, error) {
	var out []fleet.Change
	for _, u := range objects {
		change, err := One(ctx, r, c, u)
		if err != nil {
			return out, fleet.Explain("applying "+fleet.Describe(u), c, err)
		}
		out = append(out, change)
		if u.GetKind() == "CustomResourceDefinition" && !r.Given.Reads() && change.Action != fleet.Unchanged {
			if err := awaitEstablished(ctx, r, c, u.GetName()); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// One applies one object, or returns what applying it would do.
func One(ctx context.Context, r *fleet.Run, c *fleet.Cluster, u *unstructured.Unstructured) (fleet.Change, error) {
	live, err := Live(ctx, c, u)
	if err != nil {
		return fleet.Change{}, err
	}
	if live != nil && u.GetKind() == "Deployment" {
		if clean, foreign := withoutForeign(live, u); foreign {
			if r.Given.Reads() {
				return fleet.Change{Object: fleet.Reference(live), Action: fleet.Configured}, nil
			}
			o := metav1.UpdateOptions{FieldManager: fleet.FieldManager}
			if _, err := c.Client.Resource(fleet.Deployments).Namespace(live.GetNamespace()).Update(ctx, clean, o); err != nil {
				return fleet.Change{}, err
			}
		}
	}
	if r.Given.Reads() {
		return preview(ctx, r, c, u, live)
	}
	applied, err := patch(ctx, r, c, u, nil)
	if err != nil {
		return fleet.Change{}, err
	}
	return fleet.Change{Object: fleet.Reference(applied), Action: actionOf(live, applied)}, nil
}

// Live reads the live object; nil when it or its kind does not exist.
func Live(ctx context.Context, c *fleet.Cluster, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := c.Client.Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// preview returns what applying u would do, without writing.
func preview(ctx context.Context, r *fleet.Run, c *fleet.Cluster, u, live *unstructured.Unstructured) (fleet.Change, error) {
	if r.Given.DryRun != fleet.DryRunServer && !r.Given.Diff {
		return guess(u, live), nil
	}
	applied, err := patch(ctx, r, c, u, []string{metav1.DryRunAll})
	if apierrors.IsNotFound(err) {
		// Its namespace or kind would be created by this same run.
		return guess(u, live), nil
	}
	if err != nil {
		return fleet.Change{}, err
	}
	change := planned(live, Clean(applied), live != nil && equality.Semantic.DeepEqual(Clean(live).Object, Clean(applied).Object))
	if r.Given.Diff {
		change.Live, change.Object = masked(change.Live, change.Object, false)
	}
	return change, nil
}

// guess compares without the server: fields that u does not name are assumed to stay as they
// are.
func guess(u, live *unstructured.Unstructured) fleet.Change {
	return planned(live, u, live != nil && contains(live.Object, u.Object))
}

// planned returns what would happen to an object; same is true when nothing would.
func planned(live, after *unstructured.Unstructured, same bool) fleet.Change {
	change := fleet.Change{Object: fleet.Redact(after), Action: fleet.Configured, Live: fleet.Redact(Clean(live))}
	switch {
	case live == nil:
		change.Action = fleet.Created
	case same:
		change.Action = fleet.Unchanged
	}
	return change
}

// ServedPause is the pause between attempts while a kind is becoming served.
const ServedPause = 200 * time.Millisecond

// patch sends the server-side apply. A definition that has just been established may not be
// served yet; patch retries for a while.
func patch(ctx context.Context, r *fleet.Run, c *fleet.Cluster, u *unstructured.Unstructured, dryRun []string) (*unstructured.Unstructured, error) {
	o := metav1.ApplyOptions{FieldManager: fleet.FieldManager, Force: true, DryRun: dryRun}
	client := c.Client.Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace())
	applied, err := client.Apply(ctx, u.GetName(), u, o)
	for try := 0; try < 25 && dryRun == nil && fleet.IsNoKind(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueNotFound); try++ {
		select {
		case <-ctx.Done():
			return nil, err
		case <-r.Given.Clock.After(ServedPause):
		}
		applied, err = client.Apply(ctx, u.GetName(), u, o)
	}
	return applied, err
}

// NotThere is the resource version with which to apply an object that must not exist yet.
const NotThere = "0"

// isOvertaken reports whether others wrote or created an object after it was read. For one that
// did not exist, and was to be created with NotThere, the API server reports a wrong version.
func isOvertaken(err error) bool {
	return apierrors.IsConflict(err) || (apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.resourceVersion"))
}

// tries bounds how often a read and write are repeated because of concurrent writes.
const tries = 5

// Again runs do, which reads an object, decides, and writes it for the version that was read,
// and repeats it after a conflict: controllers write the status of most objects at any time,
// and the user should not be bothered with that.
func Again(do func() error) (err error) {
	for range tries {
		if err = do(); !isOvertaken(err) {
			return err
		}
	}
	return err
}

// Busy returns the error for an object that others keep writing; other errors are returned
// unchanged.
func Busy(u *unstructured.Unstructured, err error) error {
	if !isOvertaken(err) {
		return err
	}
	return &fleet.Error{Message: "others keep changing " + fleet.Describe(u), Fix: fleet.Advice("look at it, then run this again"), Err: err}
}

func actionOf(live, applied *unstructured.Unstructured) fleet.Action {
	switch {
	case live == nil || live.GetUID() != applied.GetUID():
		return fleet.Created
	case live.GetResourceVersion() == applied.GetResourceVersion(), equality.Semantic.DeepEqual(Clean(live).Object, Clean(applied).Object):
		// A new version with the same content only changes field ownership.
		return fleet.Unchanged
	}
	return fleet.Configured
}

// awaitEstablished waits until a definition is served.
func awaitEstablished(ctx context.Context, r *fleet.Run, c *fleet.Cluster, name string) error {
	err := await.Objects(ctx, await.Query{Client: c.Client, Resource: fleet.Definitions, Name: name, Clock: r.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			return len(items) == 1 && fleet.ConditionTrue(items[0], "Established"), nil
		})
	return r.Expired(err, "customresourcedefinition/"+name, "the API server has not established it", nil)
}

// Create applies an object that must not exist yet.
func Create(ctx context.Context, r *fleet.Run, c *fleet.Cluster, u *unstructured.Unstructured) (fleet.Change, error) {
	if !r.Given.Reads() {
		u = u.DeepCopy()
		u.SetResourceVersion(NotThere)
	}
	return One(ctx, r, c, u)
}

// withoutForeign returns a live Deployment with only the containers that are wanted, and
// whether it has others: they would have the ServiceAccount of the hub or the agent, and
// server-side apply keeps what others have added.
func withoutForeign(live, wanted *unstructured.Unstructured) (clean *unstructured.Unstructured, foreign bool) {
	clean = live.DeepCopy()
	for _, list := range []string{"containers", "initContainers"} {
		path := []string{"spec", "template", "spec", list}
		ours, _, _ := unstructured.NestedSlice(wanted.Object, path...)
		items, _, _ := unstructured.NestedSlice(live.Object, path...)
		kept := slices.DeleteFunc(items, func(item any) bool {
			return !slices.ContainsFunc(ours, func(our any) bool { return containerName(our) == containerName(item) })
		})
		if len(kept) == len(items) {
			continue
		}
		foreign = true
		if len(kept) == 0 && list == "containers" {
			kept = ours
		}
		_ = unstructured.SetNestedSlice(clean.Object, kept, path...) // the path exists
	}
	return clean, foreign
}

func containerName(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}
