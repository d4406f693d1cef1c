// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Options name an object of a managed cluster, and where its hub may be.
type Options struct {
	fleet.Common
	// Spoke is the cluster that has the object.
	Spoke *fleet.Cluster
	// Type is a resource as for kubectl get: deploy, deployments.apps, Deployment.
	Type string
	// Namespace of the object; ignored for cluster-scoped kinds.
	Namespace string
	// Name of the object.
	Name string
	// Hub is the hub; nil looks for it among Candidates.
	Hub *fleet.Cluster
	// Candidates are clusters of which one may be the hub. It is recognized by the address
	// that the agent uses; no request is sent to the others.
	Candidates []*fleet.Cluster
	// Cluster is the managed cluster's name; empty reads it from its agent's objects.
	Cluster string
}

// Step is one object on the way from an object to its origin.
type Step struct {
	// Depth is how many steps led here.
	Depth     int    `json:"depth"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// On is the context of its cluster, or the address when there is none.
	On string `json:"on"`
	// By are the field managers that wrote it, the last writer first.
	By []string `json:"by,omitempty"`
	// State is one word; empty when there is nothing to report.
	State string `json:"state,omitempty"`
	// Message is what is wrong, or what is important to know.
	Message string `json:"message,omitempty"`
}

// Result is the way from an object to its origin.
type Result struct {
	// Steps lead from the object upwards. An object that several works declare has a branch
	// for each, all starting at the same depth.
	Steps []Step `json:"items"`
	// Warnings say where the way could not be followed to its end.
	Warnings []fleet.Note `json:"warnings,omitempty"`
}

// The states of a Step in addition to those of works.
const (
	Missing  = "Missing"
	Evicted  = "Evicted"
	Tracked  = "Tracked"
	Selected = "Selected"
	Dropped  = "NotSelected"
)

// maxOwners bounds how many levels of controllers are followed.
const maxOwners = 10

// Object follows an object of a managed cluster to the work, set of works and placement that
// it comes from: through its controllers to one that an AppliedManifestWork owns or has
// recorded, and from there to the hub. For an object that no work declares the error names who
// wrote it.
func Object(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	t := &tracing{o: o}
	kinds, err := o.Spoke.Kinds()
	if err != nil {
		return Result{}, err
	}
	kind, err := kinds.Named(o.Type)
	if err != nil {
		return Result{}, err
	}
	object, namespace, err := t.read(ctx, kind, o.Namespace, o.Name)
	if apierrors.IsNotFound(err) {
		return Result{}, missingOn(o.Spoke, kind, namespace, o.Name)
	}
	if err != nil {
		return Result{}, fleet.Explain(fmt.Sprintf("reading %s %s", kind.Resource.Resource, o.Name), o.Spoke, err)
	}
	records, err := typed.List[workv1.AppliedManifestWork](ctx, o.Spoke.Client, fleet.AppliedManifestWorks, "", metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Result{}, fleet.Explain("listing appliedmanifestworks", o.Spoke, err)
	}
	found, err := t.climb(ctx, kinds, kind, object, records)
	if err != nil {
		return Result{}, err
	}
	if len(found) == 0 {
		return Result{}, t.noWorkError(object)
	}
	depth := len(t.out.Steps)
	for _, c := range found {
		t.addRecord(ctx, depth, c)
	}
	return t.out, t.err
}

func missingOn(c *fleet.Cluster, kind fleet.ServedKind, namespace, name string) *fleet.Error {
	return &fleet.Error{Message: fmt.Sprintf("there is no %s %s on %s", kind.Kind, strings.TrimPrefix(namespace+"/"+name, "/"), c),
		Fix: fleet.ShowObject.On(c, "resource", kind.Resource.GroupResource().String(), "name", "", "namespace", namespace)}
}

// tracing is one trace.
type tracing struct {
	o   Options
	out Result
	// agents are those of the spoke, once read.
	agents []tracedAgent
	asked  bool
	// err is why the hub that was given cannot be read.
	err error
}

func (t *tracing) add(s Step) { t.out.Steps = append(t.out.Steps, s) }

func (t *tracing) addWarning(n fleet.Note) {
	if !slices.ContainsFunc(t.out.Warnings, func(w fleet.Note) bool { return w.Text == n.Text }) {
		t.out.Warnings = append(t.out.Warnings, n)
	}
}

// claim is a record that lists the object, and whether it owns it.
type claim struct {
	record *workv1.AppliedManifestWork
	owns   bool
}

// climb adds the object and its controllers, up to the first that works have.
func (t *tracing) climb(ctx context.Context, kinds *fleet.Served, kind fleet.ServedKind, u *unstructured.Unstructured,
	records []workv1.AppliedManifestWork) ([]claim, error) {
	for range maxOwners {
		step := Step{Depth: len(t.out.Steps), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), On: t.o.Spoke.Called(), By: writers(u)}
		if u.GetDeletionTimestamp() != nil {
			step.State, step.Message = work.Deleting, "finalizers: "+strings.Join(u.GetFinalizers(), ", ")
		}
		t.add(step)
		if found := claimsOn(u, kind.Resource, records); len(found) > 0 {
			return found, nil
		}
		owner := metav1.GetControllerOf(u)
		if owner == nil {
			return nil, nil
		}
		gv, err := schema.ParseGroupVersion(owner.APIVersion)
		if err != nil {
			return nil, nil //nolint:nilerr // an owner that cannot be is none
		}
		var ok bool
		if kind, ok = kinds.Of(gv.WithKind(owner.Kind)); !ok {
			return nil, nil
		}
		up, _, err := t.read(ctx, kind, u.GetNamespace(), owner.Name)
		if apierrors.IsNotFound(err) || err == nil && up.GetUID() != owner.UID {
			return nil, nil
		}
		if err != nil {
			return nil, fleet.Explain(fmt.Sprintf("reading %s %s", kind.Resource.Resource, owner.Name), t.o.Spoke, err)
		}
		u = up
	}
	return nil, nil
}

// read reads an object of the spoke. A cluster-scoped kind has no namespace.
func (t *tracing) read(ctx context.Context, kind fleet.ServedKind, namespace, name string) (*unstructured.Unstructured, string, error) {
	if !kind.Namespaced {
		namespace = ""
	}
	u, err := t.o.Spoke.Client.Resource(kind.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	return u, namespace, err
}

// claimsOn returns the records that own u, and those that list it without owning it.
func claimsOn(u *unstructured.Unstructured, resource schema.GroupVersionResource, records []workv1.AppliedManifestWork) []claim {
	var out []claim
	for i := range records {
		r := &records[i]
		owns := slices.ContainsFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == r.UID })
		if owns || slices.ContainsFunc(apply.Recorded(r), func(a workv1.AppliedManifestResourceMeta) bool {
			return a.Group == resource.Group && a.Resource == resource.Resource && a.Namespace == u.GetNamespace() && a.Name == u.GetName() &&
				(a.UID == "" || a.UID == u.GetUID())
		}) {
			out = append(out, claim{r, owns})
		}
	}
	return out
}

// noWorkError is the error for an object that no work declares.
func (t *tracing) noWorkError(u *unstructured.Unstructured) error {
	e := &fleet.Error{Message: fmt.Sprintf("no work has applied %s on %s", fleet.Describe(u), t.o.Spoke), Cause: "its creator is not recorded",
		Fix: ListHubWorks.With()}
	if by := writers(u); len(by) > 0 {
		e.Cause = "it was written by " + strings.Join(by, ", ")
	}
	return e
}
