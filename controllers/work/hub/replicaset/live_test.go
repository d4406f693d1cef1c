// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// A set that is deleted right after its creation also deletes works that the watch has
// not delivered yet.
func TestASetThatGoesTakesWorksAlongThatWereNotSeen(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.URL.Query().Get("labelSelector")+" "+r.URL.Query().Get("continue"))
		w.Header().Set("Content-Type", "application/json")
		page := `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWorkList","metadata":{"continue":"x"},"items":[
			{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"namespace":"c1","name":"web","uid":"u1"}}]}`
		if r.URL.Query().Get("continue") != "" {
			page = strings.NewReplacer(`"x"`, `""`, "c1", "c2", "u1", "u2").Replace(page)
		}
		_, _ = w.Write([]byte(page))
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	c := &Controller{client: client, clock: clock.RealClock{}, children: newChildren(client, func(reconcile.Key) {})}
	for _, policy := range []workv1alpha1.CascadeDeletionPolicy{workv1alpha1.CascadeDeletionPolicyForeground, workv1alpha1.CascadeDeletionPolicyBackground} {
		asked = nil
		set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{workv1alpha1.FinalizerManifestWorkReplicaSet},
		}}
		set.Spec.CascadeDeletionPolicy = policy
		state, err := c.gather(t.Context(), set)
		require.NoError(t, err)
		require.Len(t, asked, 2)
		require.True(t,
			strings.HasSuffix(asked[0], "/manifestworks "+workv1alpha1.LabelManifestWorkReplicaSet+"=ns.web "), asked[0])
		plan := Decide(state)
		require.Len(t, reconcile.Of[reconcile.Remove](plan.Writes), 2)
		if policy == workv1alpha1.CascadeDeletionPolicyForeground {
			require.Contains(t, plan.Object.GetFinalizers(), workv1alpha1.FinalizerManifestWorkReplicaSet, "it waits for them")
			require.Positive(t, plan.RequeueAfter)
		}

		asked, set.Name = nil, strings.Repeat("n", 80)
		state, err = c.gather(t.Context(), set)
		require.NoError(t, err)
		require.Empty(t, asked, "no work can be marked as its")
		require.Empty(t, Decide(state).Object.GetFinalizers())
	}
}
