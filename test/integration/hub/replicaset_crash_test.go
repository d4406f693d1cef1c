// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/hub/replicaset"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// replicaSetLoop is the control loop for replica sets.
var replicaSetLoop = loops{
	kinds: []func(*runtime.Scheme) error{workv1alpha1.AddToScheme, clusterv1.AddToScheme, clusterv1beta1.AddToScheme},
	register: func(m *manager.Manager, dyn dynamic.Interface) {
		replicaset.Register(m, replicaset.Config{Client: dyn, Clock: clock.RealClock{}})
	},
}

// TestTheReplicaSetLoopMayDieAfterEveryWrite ends the loop after every write: when a set
// is new, when its template changes while a cluster leaves, and when it is deleted.
func TestTheReplicaSetLoopMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	f := &fan{namespace: "apps", clusters: []string{"k1", "k2", "k3"}}
	s, config := served(t, append([]string{"apps"}, f.clusters...)...)
	f.scene = s
	dying := func(what string, atLeast int, done func() bool) {
		t.Helper()
		lives := 0
		for ; !done(); lives++ {
			require.Less(t, lives, 60, "%s does not converge", what)
			mortal, process := faults.StopAfter(config, 1)
			replicaSetLoop.run(t, mortal, process.Died(), done)
			for _, c := range f.clusters {
				list, err := f.dyn.Resource(works).Namespace(c).List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				require.LessOrEqual(t, len(list.Items), 1, "%s: cluster %s has a work twice after %d lives", what, c, lives+1)
			}
		}
		t.Logf("%s: %d lives of one write", what, lives)
		require.GreaterOrEqual(t, lives, atLeast)
	}
	reported := func(total int) bool {
		set, err := f.get(t, "web")
		if err != nil {
			return false
		}
		_, selected := set.Status.RolledOut()
		return set.Status.Summary.Total == total && selected == total
	}
	f.place(t, "p", f.clusters...)
	f.deploy(t, "web", "one", "", "p")
	dying("a new set", 5, func() bool { return len(f.delivered(t, "web")) == 3 && reported(3) })
	f.deploy(t, "web", "two", "", "p")
	f.place(t, "p", "k1", "k2")
	dying("a new template and a cluster that leaves", 3, func() bool {
		got := f.delivered(t, "web")
		return len(got) == 2 && got[0] == "k1=two" && got[1] == "k2=two" && reported(2)
	})
	require.NoError(t, f.dyn.Resource(replicaSets).Namespace("apps").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	dying("a set that goes", 3, func() bool {
		_, err := f.get(t, "web")
		return apierrors.IsNotFound(err) && len(f.delivered(t, "web")) == 0
	})
}
