// SPDX-License-Identifier: Apache-2.0

package addon

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// watchGrants watches the roles and bindings of the hub, to notice when a right may have been
// granted. Those that the hub creates for each cluster carry a label with its name and are
// left out, since there are thousands.
//
// It returns a function that registers what is called when a role or binding is created,
// deleted or changed. That must happen before the manager runs, and a call must not block.
func watchGrants(m *manager.Manager, client dynamic.Interface) func(func()) {
	var changed []func()
	for _, resource := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		all := watch.New(watch.Options[string]{
			Client: client, Resource: rbacv1.SchemeGroupVersion.WithResource(resource), LabelSelector: "!" + clusterv1.LabelClusterName,
			Keep: func(u *unstructured.Unstructured) (string, bool) { return u.GetResourceVersion(), true },
			Same: func(before, now string) bool { return before == now },
		})
		all.OnChange(func(reconcile.Key) {
			for _, f := range changed {
				f()
			}
		})
		m.AddTask(all.Run)
	}
	return func(f func()) { changed = append(changed, f) }
}
