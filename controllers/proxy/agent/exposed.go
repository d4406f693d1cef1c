// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// exposedName identifies the loop that reads what the cluster exposes.
const exposedName = "cluster.exposedservices"

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// edit is a version of the ConfigMap: its list, or why that cannot be read.
type edit struct {
	list service.List
	err  error
	// version and uid are those of the ConfigMap.
	version, uid string
}

// exposed is what the cluster exposes of its Services.
type exposed struct {
	key   reconcile.Key
	maps  *watch.Collection[edit]
	queue *reconcile.Queue
	exec  *reconcile.Executor
	log   logr.Logger
	// list is the last one that could be read.
	list atomic.Pointer[service.List]
}

func newExposed(s Services, c Config) *exposed {
	e := &exposed{
		key: reconcile.Key{Namespace: s.Namespace, Name: connectv1alpha1.ConfigMapExposedServices}, queue: reconcile.NewQueue(exposedName),
		exec: reconcile.NewExecutor(s.Client, exposedName, c.Clock), log: c.Log,
	}
	e.list.Store(&service.List{})
	e.maps = watch.New(watch.Options[edit]{
		Client: s.Client, Resource: configMaps, Namespace: s.Namespace, FieldSelector: "metadata.name=" + e.key.Name, Log: c.Log,
		Keep: func(u *unstructured.Unstructured) (edit, bool) {
			out := edit{version: u.GetResourceVersion(), uid: string(u.GetUID())}
			data, _, err := unstructured.NestedStringMap(u.Object, "data")
			if err == nil {
				out.list, err = service.ReadList(data)
			}
			out.err = err
			return out, true
		},
	})
	e.maps.OnChange(e.onChange)
	return e
}

// onChange puts a list into effect at once. One that cannot be read is only told: the list before it
// stays, so that a slip takes nothing away and exposes nothing more.
func (e *exposed) onChange(k reconcile.Key) {
	switch now, found := e.maps.Get(k); {
	case !found:
		e.list.Store(&service.List{})
		e.log.Info("No Services of this cluster are exposed any more", "configMap", k.String())
	case now.err != nil:
		e.log.Error(now.err, "The list of exposed Services cannot be read; the one before it stays in effect", "configMap", k.String())
		e.queue.Add(k)
	default:
		e.list.Store(&now.list)
		e.log.Info("The list of exposed Services is in effect", "configMap", k.String(), "entries", now.list.Len())
	}
}

// run watches the list until ctx is done.
func (e *exposed) run(ctx context.Context) {
	ctx = logr.NewContext(ctx, e.log)
	var running sync.WaitGroup
	running.Go(func() { _ = e.maps.Run(ctx) })                                                             // it ends with ctx
	running.Go(func() { _ = reconcile.Loop{Name: exposedName, Reconcile: e.reconcile}.Run(ctx, e.queue) }) // the same
	running.Wait()
}

// reconcile tells those who look at the ConfigMap that it cannot be read.
func (e *exposed) reconcile(ctx context.Context, k reconcile.Key) (reconcile.Result, error) {
	now, found := e.maps.Get(k)
	if !found || now.err == nil {
		return reconcile.Result{}, nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": k.Namespace, "name": k.Name, "uid": now.uid},
	}}
	return e.exec.Execute(ctx, u, reconcile.Plan{Events: []reconcile.Event{{
		Type: corev1.EventTypeWarning, Reason: connectv1alpha1.EventInvalidExposedServices, Once: true, Of: now.version,
		Message: fmt.Sprintf("The list before this edit stays in effect: %s", now.err),
	}}})
}

// isRead reports whether the cluster's list is known.
func (e *exposed) isRead() bool {
	select {
	case <-e.maps.Synced():
		return true
	default:
		return false
	}
}
