// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// rehearsal sends what an agent would send, as a dry run.
type rehearsal struct {
	spoke   *fleet.Cluster
	kinds   *fleet.Served
	applier *apply.Applier
	// record is the AppliedManifestWork; nil when the work was never applied.
	record *workv1.AppliedManifestWork
}

// dryRuns marks every writing request as a dry run, so that nothing sent through it can change
// anything.
type dryRuns struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (d dryRuns) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		r = r.Clone(r.Context())
		q := r.URL.Query()
		q.Set("dryRun", metav1.DryRunAll)
		r.URL.RawQuery = q.Encode()
	}
	return d.next.RoundTrip(r)
}

// diffSpoke compares the objects of a work with those of its cluster. The agent's own code
// decides what it would write, and the API server what that results in.
func (o *Options) diffSpoke(ctx context.Context, w *workv1.ManifestWork) ([]fleet.Change, error) {
	d, err := o.rehearse(ctx, w.Name)
	if err != nil {
		return nil, err
	}
	var out []fleet.Change
	var failures []error
	wanted := map[apply.ID]bool{}
	for _, m := range w.Spec.Workload.Manifests {
		object, err := manifest.Decode(m.Raw)
		if err != nil {
			failures = append(failures, fleet.Fail("reading a manifest of work "+w.Namespace+"/"+w.Name, err, nil))
			continue
		}
		kind, ok := d.kinds.Of(object.GroupVersionKind())
		if !ok {
			out = append(out, fleet.Change{Object: object, Action: fleet.Created})
			continue
		}
		if err := manifest.Clean(object, kind.Namespaced); err != nil {
			failures = append(failures, fleet.Fail("reading "+fleet.Describe(object), err, nil))
			continue
		}
		id := apply.IDOf(kind.Resource, object.GetNamespace(), object.GetName())
		wanted[id] = true
		change, err := d.compare(ctx, &w.Spec, id, kind, object)
		if err != nil {
			failures = append(failures, fleet.Explain("comparing "+fleet.Describe(object), o.Spoke, err))
			continue
		}
		out = append(out, change)
	}
	gone, err := d.compareDropped(ctx, wanted)
	out = append(out, gone...)
	for i := range out {
		out[i].On = w.Namespace
		out[i].Live, out[i].Object = write.Masked(out[i].Live, out[i].Object)
	}
	return out, firstOf(append(failures, err))
}

// rehearse prepares a rehearsal on the cluster.
func (o *Options) rehearse(ctx context.Context, name string) (*rehearsal, error) {
	kinds, err := o.Spoke.Kinds()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(o.Spoke.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dryRuns{next} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", o.Spoke, err)
	}
	d := &rehearsal{spoke: o.Spoke, kinds: kinds, applier: apply.New(client, kinds)}
	records, err := typed.List[workv1.AppliedManifestWork](ctx, o.Spoke.Client, fleet.AppliedManifestWorks, "", metav1.ListOptions{})
	if err != nil {
		return nil, fleet.Explain("listing appliedmanifestworks", o.Spoke, err)
	}
	if at := slices.IndexFunc(records, func(r workv1.AppliedManifestWork) bool {
		return r.Spec.ManifestWorkName == name && r.DeletionTimestamp == nil
	}); at >= 0 {
		d.record = &records[at]
	}
	return d, nil
}

// compare rehearses the write of one object.
func (d *rehearsal) compare(ctx context.Context, spec *workv1.ManifestWorkSpec, id apply.ID, kind fleet.ServedKind,
	object *unstructured.Unstructured) (fleet.Change, error) {
	options, err := apply.OptionsFor(spec, id)
	if err != nil {
		return fleet.Change{}, err
	}
	live, err := d.applier.Observe(ctx, kind.Resource, id.Namespace, id.Name)
	if err != nil {
		return fleet.Change{}, err
	}
	request := apply.Request{Resource: kind.Resource, Object: object, Options: options, Live: live}
	if d.record != nil {
		request.Owner = apply.OwnerOf(d.record)
	}
	change := fleet.Change{Object: declared(object), Live: declared(live), Action: fleet.Configured}
	if live == nil {
		change.Action = fleet.Created
	}
	switch result, err := d.applier.Apply(ctx, request); {
	case err == nil && result.Live != nil:
		change.Object = declared(result.Live)
	case err == nil: // others have to create it
	case live == nil && apierrors.IsNotFound(err): // its namespace or kind is created by this same work
	default:
		return fleet.Change{}, err
	}
	return change, nil
}

// declared returns what users declare of an object: without what servers write, and without
// owner references of works.
func declared(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := write.Clean(u)
	if out != nil {
		unstructured.RemoveNestedField(out.Object, "metadata", "ownerReferences")
	}
	return out
}

// compareDropped returns the objects that the work has applied and no longer wants: the agent would
// delete them, if it owns them.
func (d *rehearsal) compareDropped(ctx context.Context, wanted map[apply.ID]bool) ([]fleet.Change, error) {
	if d.record == nil {
		return nil, nil
	}
	var out []fleet.Change
	var failures []error
	for _, r := range apply.Recorded(d.record) {
		gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
		if wanted[apply.IDOf(gvr, r.Namespace, r.Name)] {
			continue
		}
		live, err := d.applier.Observe(ctx, gvr, r.Namespace, r.Name)
		switch {
		case err != nil && !apply.IsNotServed(errors.Unwrap(err)):
			failures = append(failures, fleet.Explain("comparing "+r.Resource+" "+r.Name, d.spoke, err))
		case live == nil:
		case slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == d.record.UID }):
			out = append(out, fleet.Change{Object: declared(live), Live: declared(live), Action: fleet.Deleted})
		}
	}
	return out, firstOf(failures)
}
