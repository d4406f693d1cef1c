// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/deploy"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestAllThatIsKeptCanBePacked(t *testing.T) {
	for _, o := range []any{
		&whole[addonv1alpha1.ManagedClusterAddOn]{}, &whole[clusterv1.ManagedCluster]{}, &whole[workv1.ManifestWork]{},
		&drawn{}, &asked{}, &whole[rbacv1.Role]{}, &whole[rbacv1.RoleBinding]{}, &whole[certificatesv1.CertificateSigningRequest]{},
	} {
		require.NoError(t, packed.Packable(o))
	}
}

// work is what a hub holds of a work of ten manifests with some status.
func work(cluster string) *workv1.ManifestWork {
	yes := true
	w := &workv1.ManifestWork{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: "addon-web-deploy-0", UID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", ResourceVersion: "1234567", Generation: 3,
			Labels: map[string]string{addonv1alpha1.LabelAddOnName: "web"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "a/v1", Kind: "ManagedClusterAddOn", Name: "web", UID: "6ba7b810-9dad-11d1-80b4-00c04fd430c9", Controller: &yes},
			},
		},
	}
	for i := range 10 {
		raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"web","name":"part-%d"},"data":{"a":%q}}`, i, strings.Repeat("x", 4000))
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}})
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Kind: "ConfigMap", Resource: "configmaps", Version: "v1", Namespace: "web", Name: fmt.Sprintf("part-%d", i)},
			Conditions:   []metav1.Condition{{Type: workv1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "R", Message: strings.Repeat("m", 100)}},
		})
	}
	return w
}

func TestAWorkIsKeptInLittleSpaceAndComesBack(t *testing.T) {
	g := newGroup(&packed.Dictionary{}, grouping[*workv1.ManifestWork]{
		of: func(w *workv1.ManifestWork) reconcile.Key { return reconcile.Key{Namespace: w.Namespace, Name: "web"} },
	})
	var last string
	for i := range 3 {
		w := work(fmt.Sprintf("cluster%d", i))
		deploy.Slim(w)
		last = g.pack(w)
		require.Empty(t, cmp.Diff(w, g.unpack(kept{data: last})))
	}
	require.Less(t, len(last), 1200, "of a work with 40 KB of manifests")
}

func TestWhatAnObjectBelongsTo(t *testing.T) {
	g := newGroup(&packed.Dictionary{}, grouping[*workv1.ManifestWork]{})
	require.Empty(t, g.regroup(reconcile.Key{Name: "unknown"}))
	require.Empty(t, g.keys(reconcile.Key{Name: "nobody"}))
	require.Nil(t, g.get(reconcile.Key{Name: "unknown"}))
}

func TestWarningsAreToldOnceForEachContent(t *testing.T) {
	var w warned
	tell := func(warnings ...string) int {
		var plan reconcile.Plan
		w.add(&plan, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, warnings)
		return len(plan.Events)
	}
	require.Equal(t, 0, tell())
	require.Equal(t, 1, tell("a", "b"))
	require.Equal(t, 0, tell("a", "b"))
	require.Equal(t, 1, tell("a"))
	require.Equal(t, 0, tell())
	require.Equal(t, 1, tell("a"), "it was well in between")
}
