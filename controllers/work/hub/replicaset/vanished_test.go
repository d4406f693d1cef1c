// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func named() *workv1alpha1.ManifestWorkReplicaSet {
	return &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"}}
}

func TestASetVanishesThatWasTakenAMomentAgo(t *testing.T) {
	at := time.Unix(1000, 0)
	var none taken
	require.False(t, none.gone(named(), at), "another process took it")

	var young, old, deleting taken
	young.note("u", at)
	require.True(t, young.gone(named(), at.Add(takenRecently-1)))
	require.True(t, young.isVanished(reconcile.KeyOf(named())))

	old.note("u", at)
	require.False(t, old.gone(named(), at.Add(takenRecently)), "no deletion takes that long")
	old.note("v", at.Add(takenRecently))
	require.Len(t, old.at, 1, "what is over is forgotten")

	deleting.note("u", at)
	going := named()
	going.DeletionTimestamp = &metav1.Time{Time: at}
	require.False(t, deleting.gone(going, at), "somebody took its finalizer off")
}

// Somebody may take the finalizer off a set that has long been delivered, to delete it and keep its
// works; the loop, which sees that, has not taken the set a moment ago.
func TestASetThatWasReportedOnIsNotNew(t *testing.T) {
	set := named()
	require.True(t, isNew(set))
	set.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionManifestworkApplied}}
	require.False(t, isNew(set))
	held, deleting := named(), named()
	held.Finalizers = []string{workv1alpha1.FinalizerManifestWorkReplicaSet}
	require.False(t, isNew(held))
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	require.False(t, isNew(deleting))
}

// The works of a set that vanished are deleted only when no set of its name exists.
func TestTheWorksOfAVanishedSetGo(t *testing.T) {
	for name, tc := range map[string]struct {
		set     int
		deleted bool
		fails   bool
	}{
		"it is gone":        {http.StatusNotFound, true, false},
		"it exists again":   {http.StatusOK, false, false},
		"nobody can say so": {http.StatusForbidden, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			deleted := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				item := `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
					"metadata":{"namespace":"c1","name":"web","uid":"w","resourceVersion":"7"}}`
				switch {
				case strings.HasSuffix(r.URL.Path, "/manifestworkreplicasets/web"):
					w.WriteHeader(tc.set)
					_, _ = io.WriteString(w, `{"apiVersion":"work.open-cluster-management.io/v1alpha1","kind":"ManifestWorkReplicaSet","metadata":{"name":"web"}}`)
				case r.Method == http.MethodDelete:
					body, _ := io.ReadAll(r.Body)
					deleted = r.URL.Path + string(body)
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
				case strings.HasSuffix(r.URL.Path, "/manifestworks/web"):
					_, _ = io.WriteString(w, item)
				default:
					_, _ = io.WriteString(w, `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWorkList","metadata":{},"items":[`+item+`]}`)
				}
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			c := &Controller{client: client}
			key := reconcile.KeyOf(named())
			require.NoError(t, c.clearVanished(t.Context(), key), "a set that did not vanish asks nothing")
			c.taken.note("u", time.Unix(1, 0))
			require.True(t, c.taken.gone(named(), time.Unix(1, 0)))
			err = c.clearVanished(t.Context(), key)
			require.Equal(t, tc.fails, err != nil, "%v", err)
			require.Equal(t, tc.fails, c.taken.isVanished(key), "what failed is tried again")
			require.Equal(t, tc.deleted, strings.Contains(deleted, "/namespaces/c1/manifestworks/web"), deleted)
			if tc.deleted {
				require.Contains(t, deleted, `"uid":"w"`)
			}
		})
	}
}
