// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// grants watches the roles and bindings of the hub, to notice when a right may have been
// granted. Those that the hub creates for each cluster carry a label with its name and are
// left out, since there are thousands.
type grants struct {
	kinds   []*watch.Collection[string]
	changed []func()
}

func newGrants(client dynamic.Interface) *grants {
	g := &grants{}
	for _, resource := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		all := watch.New(watch.Options[string]{
			Client: client, Resource: rbacv1.SchemeGroupVersion.WithResource(resource), LabelSelector: "!" + clusterv1.LabelClusterName,
			Keep: func(u *unstructured.Unstructured) (string, bool) { return u.GetResourceVersion(), true },
			Same: func(before, now string) bool { return before == now },
		})
		all.OnChange(func(reconcile.Key) {
			for _, f := range g.changed {
				f()
			}
		})
		g.kinds = append(g.kinds, all)
	}
	return g
}

// OnChange registers a function that is called when a role or binding is created, deleted or
// changed. OnChange must be called before Run, and the function must not block.
func (g *grants) OnChange(f func()) { g.changed = append(g.changed, f) }

// Run watches until ctx is done.
func (g *grants) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, all := range g.kinds {
		running.Go(func() { _ = all.Run(ctx) })
	}
	running.Wait()
	return nil
}
