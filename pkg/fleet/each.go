// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ClusterChange is what happened on one cluster.
type ClusterChange struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Change is what happened to the object there.
	Change
	// Failure is why it failed, if it did.
	Failure string `json:"error,omitempty"`

	err error
}

// MarshalJSON writes the cluster beside the object and the action.
func (d ClusterChange) MarshalJSON() ([]byte, error) {
	out := map[string]any{"cluster": d.Cluster}
	if d.Object != nil {
		out["object"], out["action"] = d.Object.Object, d.Action
	}
	if d.Failure != "" {
		out["error"] = d.Failure
	}
	return json.Marshal(out)
}

// ClusterChanges is what happened on all clusters, by name.
type ClusterChanges struct {
	Clusters []ClusterChange `json:"clusters"`
	Items    []Change        `json:"items"`
}

// parallel bounds how many clusters are written to at the same time.
const parallel = 16

// Each runs do for every cluster in parallel and collects the results.
func Each(names []string, do func(string) (Change, error)) (ClusterChanges, error) {
	return EachOf(names, func(i int) (Change, error) { return do(names[i]) })
}

// EachOf is Each where a cluster may be named more than once.
func EachOf(names []string, do func(int) (Change, error)) (ClusterChanges, error) {
	done := make([]ClusterChange, len(names))
	var group errgroup.Group
	var mu sync.Mutex
	group.SetLimit(parallel)
	for i, name := range names {
		group.Go(func() error {
			change, err := do(i)
			mu.Lock()
			defer mu.Unlock()
			done[i] = ClusterChange{Cluster: name, Change: change, err: err}
			switch {
			case errors.Is(err, context.Canceled):
				done[i].Failure = "interrupted"
			case err != nil:
				done[i].Failure = err.Error()
			}
			return nil
		})
	}
	_ = group.Wait()
	result := ClusterChanges{Clusters: done}
	var failures []error
	for _, d := range done {
		if d.err != nil {
			failures = append(failures, d.err)
		}
		if d.Object != nil {
			result.Items = append(result.Items, d.Change)
		}
	}
	return result, Outcome(failures, len(names))
}

// Outcome folds the failures of many clusters into one error.
func Outcome(failures []error, total int) error {
	switch {
	case len(failures) == 0:
		return nil
	case slices.ContainsFunc(failures, func(err error) bool { return errors.Is(err, context.Canceled) }):
		return context.Canceled
	case total == 1:
		return failures[0]
	}
	out := &Error{Kind: kindOf(failures), Message: fmt.Sprintf("all %d clusters failed", total), Cause: OneLine(failures[0].Error()),
		Err: errors.Join(failures...)}
	if len(failures) < total {
		out.Kind, out.Message = Partial, fmt.Sprintf("%d of %d clusters failed", len(failures), total)
	}
	var first *Error
	if errors.As(failures[0], &first) {
		out.Fix = first.Fix
	}
	return out
}

// kindOf returns the kind that all errors share, or Failed.
func kindOf(failures []error) Kind {
	kind := Kind(-1)
	for _, err := range failures {
		var e *Error
		if !errors.As(err, &e) || (kind >= 0 && e.Kind != kind) {
			return Failed
		}
		kind = e.Kind
	}
	return kind
}

// BeingDeleted is the error for a write to an object that is being deleted.
func BeingDeleted(live *unstructured.Unstructured) error {
	return &Error{Message: Describe(live) + " is being deleted", Cause: "finalizers: " + strings.Join(live.GetFinalizers(), ", "),
		Fix: Advice("wait until it is gone, then run this again")}
}
