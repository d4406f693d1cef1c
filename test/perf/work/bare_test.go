// SPDX-License-Identifier: Apache-2.0

//go:build perf

package work

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// bareNamespace holds works that no agent looks at.
const bareNamespace = "bare"

var appliedWorks = workv1.GroupVersion.WithResource(workv1.ResourceAppliedManifestWorks)

// bare is what the writes of a work cost the API servers without an agent: no other program
// can be faster that writes the same, since bare reads nothing, decides nothing and waits for
// nothing but the answers.
type bare struct {
	*probe
	prefix string
	// owners are the UIDs of the records, by work.
	owners *sync.Map
}

func (p *probe) bare(prefix string) bare { return bare{probe: p, prefix: prefix, owners: &sync.Map{}} }

// ones returns how long n works take one after the other, each until it is applied.
func (b bare) ones(n int) []time.Duration {
	b.t.Helper()
	b.prepare()
	var took []time.Duration
	for i := range n {
		began := time.Now()
		require.NoError(b.t, b.toApplied(b.t.Context(), fmt.Sprintf("%s-%d", b.prefix, i)))
		took = append(took, time.Since(began))
	}
	return took
}

// prepare creates the namespace.
func (b bare) prepare() {
	b.t.Helper()
	if _, err := post(b.t.Context(), b.hub, namespaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"bare"}}`); !apierrors.IsAlreadyExists(err) {
		require.NoError(b.t, err)
	}
}

// life measures n works from their creation to their end.
func (b bare) life(n int, into *measured) {
	b.t.Helper()
	b.prepare()
	// An agent has a watch of its works, and so has whoever waits for them.
	for range 2 {
		w, err := b.hub.Resource(works).Namespace(bareNamespace).Watch(b.t.Context(), metav1.ListOptions{})
		require.NoError(b.t, err)
		defer w.Stop()
		go func() {
			for range w.ResultChan() {
				continue // what comes is not used
			}
		}()
	}
	for _, s := range []struct {
		into *cost
		one  func(ctx context.Context, name string) error
	}{{&into.bareCreated, b.create}, {&into.bareUpdated, b.update}, {&into.bareDeleted, b.remove}} {
		before, began := b.used(), time.Now()
		require.NoError(b.t, eachOf(n, func(i int) error { return s.one(b.t.Context(), fmt.Sprintf("%s-%d", b.prefix, i)) }))
		took := time.Since(began)
		<-time.After(settle)
		c := b.since(before, began)
		c.took = took
		c.servers -= into.rest.servers
		s.into.add(c)
	}
}

// create makes the writes of a work of one object.
func (b bare) create(ctx context.Context, name string) error {
	return inTurn(
		func() error { return b.toApplied(ctx, name) },
		func() error {
			return b.annotate(ctx, b.record(name), map[string]any{
				workv1.AnnotationIntent: nil, workv1.AnnotationLastSeen: sighting(1), "seal": sighting(1),
			})
		},
	)
}

// toApplied makes those until the status of the work says Applied.
func (b bare) toApplied(ctx context.Context, name string) error {
	record := b.record(name)
	return inTurn(
		func() error {
			_, err := post(ctx, b.hub, works, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
				"metadata":{"name":%q,"namespace":%q},"spec":{"workload":{"manifests":[%s]}}}`, name, bareNamespace, manifestsOf(name, 1, "1")))
			return err
		},
		func() error {
			return b.patchWork(ctx, name, map[string]any{"metadata": finalizers(workv1.FinalizerManifestWork)})
		},
		func() error {
			created, err := post(ctx, b.spoke, appliedWorks, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"AppliedManifestWork",
				"metadata":{"name":%q,"finalizers":[%q],"annotations":{%q:%q,%q:%q}},"spec":{"hubHash":"bare","agentID":"bare","manifestWorkName":%q}}`,
				record, workv1.FinalizerAppliedManifestWork, workv1.AnnotationLastSeen, sighting(1), workv1.AnnotationIntent, listOf(name), name))
			if err == nil {
				b.owners.Store(name, created.GetUID())
			}
			return err
		},
		func() error { return b.apply(ctx, name, "1") },
		func() error {
			return patch(ctx, b.spoke, appliedWorks, "", record, map[string]any{"status": map[string]any{"appliedResources": json.RawMessage(listOf(name))}}, "status")
		},
		func() error { return b.report(ctx, name, 1) },
	)
}

// update makes the writes of a work whose object changes.
func (b bare) update(ctx context.Context, name string) error {
	return inTurn(
		func() error {
			return b.patchWork(ctx, name, map[string]any{"spec": map[string]any{"workload": map[string]any{
				"manifests": json.RawMessage("[" + manifestsOf(name, 1, "2") + "]"),
			}}})
		},
		func() error { return b.apply(ctx, name, "2") },
		func() error { return b.report(ctx, name, 2) },
		func() error {
			return b.annotate(ctx, b.record(name), map[string]any{workv1.AnnotationLastSeen: sighting(2), "seal": sighting(2)})
		},
	)
}

// remove makes the writes of a work that is deleted.
func (b bare) remove(ctx context.Context, name string) error {
	record, none := b.record(name), map[string]any{"metadata": finalizers()}
	return inTurn(
		func() error {
			return b.hub.Resource(works).Namespace(bareNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		},
		func() error { return b.spoke.Resource(appliedWorks).Delete(ctx, record, metav1.DeleteOptions{}) },
		func() error {
			return b.spoke.Resource(configMaps).Namespace("default").Delete(ctx, name+"-0", metav1.DeleteOptions{})
		},
		func() error { return patch(ctx, b.spoke, appliedWorks, "", record, none) },
		func() error { return b.patchWork(ctx, name, none) },
	)
}

func (b bare) record(name string) string { return "bare-" + name }

func (b bare) patchWork(ctx context.Context, name string, body map[string]any, subresource ...string) error {
	return patch(ctx, b.hub, works, bareNamespace, name, body, subresource...)
}

func (b bare) annotate(ctx context.Context, record string, values map[string]any) error {
	return patch(ctx, b.spoke, appliedWorks, "", record, map[string]any{"metadata": map[string]any{"annotations": values}})
}

// apply writes the object as an agent does.
func (b bare) apply(ctx context.Context, name, value string) error {
	owner, _ := b.owners.Load(name)
	object := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default","ownerReferences":[
		{"apiVersion":"work.open-cluster-management.io/v1","kind":"AppliedManifestWork","name":%q,"uid":%q}]},"data":{"a":%q}}`,
		name+"-0", b.record(name), owner, value)
	_, err := b.spoke.Resource(configMaps).Namespace("default").Patch(ctx, name+"-0", types.ApplyPatchType, object,
		metav1.PatchOptions{FieldManager: workv1.DefaultFieldManager, Force: new(true)})
	return err
}

// report writes the status of a work of one object.
func (b bare) report(ctx context.Context, name string, generation int64) error {
	now := metav1.Now()
	conditions := []metav1.Condition{}
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		conditions = append(conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "AppliedManifestWorkComplete", Message: "Apply manifest work complete",
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	manifest := workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "default", Name: name + "-0"},
		Conditions:   conditions,
	}
	return b.patchWork(ctx, name, map[string]any{"status": map[string]any{
		"conditions": conditions, "resourceStatus": map[string]any{"manifests": []workv1.ManifestCondition{manifest}},
	}}, "status")
}

// listOf is the list of the objects of a work.
func listOf(name string) string {
	return fmt.Sprintf(`[{"version":"v1","resource":"configmaps","namespace":"default","name":%q,"uid":"5f1b7a40-0000-4000-8000-000000000001"}]`, name+"-0")
}

// sighting is a note of the form that an agent makes.
func sighting(generation int) string {
	return fmt.Sprintf("5f1b7a40-0000-4000-8000-000000000002 %d 123456", generation)
}

func finalizers(names ...string) map[string]any {
	return map[string]any{"finalizers": append([]string{}, names...)}
}

func patch(
	ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, namespace, name string, body map[string]any, subresource ...string,
) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = client.Resource(gvr).Namespace(namespace).Patch(ctx, name, types.MergePatchType, raw, metav1.PatchOptions{}, subresource...)
	return err
}

// inTurn takes steps until one fails.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
