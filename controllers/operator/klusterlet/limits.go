// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// limits are what the ConfigMap beside the agent says about the connections that it accepts.
type limits struct {
	data map[string]string
	tls  observe.TLS
	// problem is why the ConfigMap cannot be read; empty if it can.
	problem string
}

// template returns the content of a copy.
func (l limits) template() *unstructured.Unstructured {
	data := map[string]any{}
	for key, value := range l.data {
		data[key] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
}

// limitsWatch watches that ConfigMap.
type limitsWatch struct {
	*watch.Collection[limits]
	key reconcile.Key
}

// watchLimits calls set with the limits whenever they change: with nil when there is no ConfigMap,
// and not at all for one that cannot be read, which changes nothing.
func watchLimits(client dynamic.Interface, namespace string, set func(*observe.TLS), log logr.Logger) *limitsWatch {
	w := &limitsWatch{key: reconcile.Key{Namespace: namespace, Name: observe.ConfigMapProfile}}
	w.Collection = watch.New(watch.Options[limits]{
		Client: client, Resource: configMapsResource, Namespace: namespace, FieldSelector: "metadata.name=" + observe.ConfigMapProfile, Log: log,
		Keep: func(u *unstructured.Unstructured) (l limits, _ bool) {
			var err error
			l.data, _, _ = unstructured.NestedStringMap(u.Object, "data")
			if _, l.tls, err = observe.ReadProfile(l.data); err != nil {
				l.problem = fmt.Sprintf("ConfigMap %s/%s is not in effect: %v", namespace, observe.ConfigMapProfile, err)
			}
			return l, true
		},
	})
	w.OnChange(func(reconcile.Key) {
		switch l, found := w.read(); {
		case !found:
			set(nil)
		case l.problem == "":
			set(&l.tls)
		}
	})
	return w
}

func (w *limitsWatch) read() (limits, bool) { return w.Get(w.key) }

func (w *limitsWatch) synced() bool {
	select {
	case <-w.Synced():
		return true
	default:
		return false
	}
}
