// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var nodesResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// Node is what is kept of a node.
type Node struct {
	Capacity, Allocatable clusterv1.ResourceList
	// Cordoned is true when nothing new is scheduled there.
	Cordoned bool
}

// NewNodes makes the collection of nodes, reduced to what is summed up. A node's heartbeat
// changes none of that and triggers nothing.
func NewNodes(client dynamic.Interface, log logr.Logger) *watch.Collection[Node] {
	return watch.New(watch.Options[Node]{
		Client: client, Resource: nodesResource, Log: log,
		Keep: func(u *unstructured.Unstructured) (Node, bool) {
			cordoned, _, _ := unstructured.NestedBool(u.Object, "spec", "unschedulable")
			return Node{Capacity: quantities(u, "capacity"), Allocatable: quantities(u, "allocatable"), Cordoned: cordoned}, true
		},
		Same: func(before, now Node) bool {
			return before.Cordoned == now.Cordoned && equalQuantities(before.Capacity, now.Capacity) && equalQuantities(before.Allocatable, now.Allocatable)
		},
	})
}

func equalQuantities(a, b clusterv1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func quantities(u *unstructured.Unstructured, field string) clusterv1.ResourceList {
	texts, _, _ := unstructured.NestedMap(u.Object, "status", field)
	out := make(clusterv1.ResourceList, len(texts))
	for name, text := range texts {
		s, _ := text.(string)
		if q, err := resource.ParseQuantity(s); err == nil {
			out[clusterv1.ResourceName(name)] = q
		}
	}
	return out
}

// manager is the field manager of this loop's patches.
const manager = "ocm." + Name

// KeepOwnFields removes the managed fields of a ManagedCluster except those of this loop,
// which show, even after a restart, which capacity it set.
func KeepOwnFields(u *unstructured.Unstructured) {
	u.SetManagedFields(slices.DeleteFunc(u.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager != manager || f.Subresource != "status"
	}))
}

// ownCapacity returns the resources in status.capacity that this loop set last.
func ownCapacity(fields []metav1.ManagedFieldsEntry) map[clusterv1.ResourceName]bool {
	out := map[clusterv1.ResourceName]bool{}
	for _, f := range fields {
		if f.Manager != manager || f.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Status struct {
				Capacity map[string]json.RawMessage `json:"f:capacity"`
			} `json:"f:status"`
		}
		if json.Unmarshal(f.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		for key := range owned.Status.Capacity {
			if name, ok := strings.CutPrefix(key, "f:"); ok {
				out[clusterv1.ResourceName(name)] = true
			}
		}
	}
	return out
}
