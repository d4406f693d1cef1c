// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply/ignore"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// refusals are messages by which an API server says that server-side apply cannot take a
// manifest that a PUT or a merge patch would take.
var refusals = []string{"duplicate entries for key", "field not declared in schema"}

// maxRefusal bounds how much of the server's reason a condition quotes, in bytes.
const maxRefusal = 200

// refused reports whether server-side apply rejected the manifest as such, and for which
// of the known reasons.
func refused(err error) (string, bool) {
	text := err.Error()
	for _, r := range refusals {
		at := strings.Index(text, r)
		if at < 0 {
			continue
		}
		// The path of the field precedes the reason, after the last ";" or ")" of the
		// introduction.
		begin := strings.LastIndexAny(text[:at], ")\n") + 1
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text[begin:]), ":"))
		return excerpt.Within(text, maxRefusal), true
	}
	return "", false
}

// merge writes the manifest by a three-way merge patch: it sets what the manifest
// declares, and removes what our manager wrote before and the manifest no longer
// declares. Lists are replaced whole.
func (a *Applier) merge(ctx context.Context, r Request) (Result, error) {
	if r.Live == nil {
		return a.create(ctx, r)
	}
	body := r.Object.DeepCopy()
	owners := wantedOwners(body.GetOwnerReferences(), r.Live, r.Owner, r.Options.Owned)
	body.SetOwnerReferences(append([]metav1.OwnerReference{}, owners...)) // an empty list too
	delete(body.Object, "status")
	// By any operation, but on the object itself.
	owned := ignore.OwnedFields(r.Live, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == r.Options.Manager && entry.Subresource == ""
	})
	patch := threeWay(r.Live.Object, body.Object, owned)
	if len(patch) == 0 {
		return resultOf(r.Live), nil
	}
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = string(r.Live.GetUID()), r.Live.GetResourceVersion()
	raw, err := json.Marshal(patch)
	if err != nil {
		return Result{}, fmt.Errorf("encoding the merge patch: %w", err)
	}
	live, err := a.write(ctx, r, func(ctx context.Context, api dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return api.Patch(ctx, body.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: r.Options.Manager})
	})
	if err != nil {
		return Result{}, err
	}
	return a.own(ctx, r, live)
}

// threeWay returns the JSON merge patch that brings live to desired: the fields of
// desired that differ, and null for owned fields that are no longer desired. Lists and
// their owners are treated as one value.
func threeWay(live, desired map[string]any, owned *fieldpath.Set) map[string]any {
	patch := map[string]any{}
	for key, want := range desired {
		have, present := live[key]
		haveMap, bothA := have.(map[string]any)
		wantMap, bothB := want.(map[string]any)
		if bothA && bothB {
			if child := threeWay(haveMap, wantMap, below(owned, key)); len(child) > 0 {
				patch[key] = child
			}
			continue
		}
		if !present || !reflect.DeepEqual(have, want) {
			patch[key] = want
		}
	}
	for key, have := range live {
		if _, wanted := desired[key]; wanted {
			continue
		}
		if owned.Members.Has(fieldpath.FieldNameElement(key)) {
			patch[key] = nil
			continue
		}
		if haveMap, ok := have.(map[string]any); ok {
			if child := threeWay(haveMap, nil, below(owned, key)); len(child) > 0 {
				patch[key] = child
			}
		}
	}
	return patch
}

func below(owned *fieldpath.Set, key string) *fieldpath.Set {
	return owned.WithPrefix(fieldpath.FieldNameElement(key))
}
