// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// slim is the state with slim works.
func slim(s State) State {
	works := make([]*workv1.ManifestWork, len(s.Works))
	for i := range s.Works {
		works[i] = s.Works[i].DeepCopy()
		Slim(works[i])
	}
	s.Works = works
	return s
}

func TestASlimWorkIsJudgedAsTheWholeOne(t *testing.T) {
	s := state(t, "ConfigMap a size=3000", "Deployment b", "ConfigMap c size=200000", "ConfigMap d size=300000")
	run(t, &s)
	require.Len(t, s.Works, 2)
	for _, w := range slim(s).Works {
		for _, m := range w.Spec.Workload.Manifests {
			require.Less(t, len(m.Raw), 100, "%s", m.Raw)
		}
	}
	require.Empty(t, outline(t, Decide(slim(s))), "nothing has changed")

	s.Manifests[0] = object(t, "ConfigMap a x=y")
	require.Equal(t, reconcile.Of[reconcile.Patch](Decide(s).Writes), reconcile.Of[reconcile.Patch](Decide(slim(s)).Writes))
	require.Len(t, reconcile.Of[reconcile.Patch](Decide(slim(s)).Writes), 1, "only the work that holds it is written")
	s.Manifests = s.Manifests[1:]
	require.Equal(t, reconcile.Of[reconcile.Patch](Decide(s).Writes), reconcile.Of[reconcile.Patch](Decide(slim(s)).Writes))
}

func TestWhatIsNoManifestIsWrittenAnew(t *testing.T) {
	s := state(t, "ConfigMap a")
	run(t, &s)
	s.Works[0].Spec.Workload.Manifests[0].Raw = []byte(`{"kind":""}`)
	require.Len(t, reconcile.Of[reconcile.Patch](Decide(slim(s)).Writes), 1)
}

func TestASlimWorkKeepsWhatHooksSay(t *testing.T) {
	s := state(t, "ConfigMap a", "Job clean hook")
	run(t, &s)
	deleted(&s)
	run(t, &s)
	report(t, &s, "c1/addon-web-pre-delete", metav1.ConditionTrue, map[string]string{"JobComplete": "True"})
	report(t, &s, "c1/addon-web-deploy-0", metav1.ConditionTrue, nil)
	s = slim(s)
	require.Empty(t, s.Works[0].Status.ResourceStatus.Manifests)
	run(t, &s)
	require.Empty(t, s.AddOn.Finalizers)
}

func TestAManifestThatWasNotAppliedIsNamed(t *testing.T) {
	s := state(t, "ConfigMap a", "ConfigMap b", "ConfigMap c")
	run(t, &s)
	report(t, &s, "c1/addon-web-deploy-0", metav1.ConditionFalse, nil)
	manifests := s.Works[0].Status.ResourceStatus.Manifests
	for i, message := range []string{"", "metadata.namespace: must be set" + strings.Repeat("!", 2*maxRefusal), "another"} {
		status := metav1.ConditionFalse
		if i == 0 {
			status = metav1.ConditionTrue
		}
		manifests[i].Conditions = []metav1.Condition{
			{Type: workv1.ConditionApplied, Status: status, Message: message},
			{Type: workv1.ConditionAvailable, Status: metav1.ConditionUnknown},
		}
	}
	same := slim(s)
	kept := same.Works[0].Status.ResourceStatus.Manifests
	require.Len(t, kept, 1)
	require.Len(t, kept[0].Conditions, 1)
	require.LessOrEqual(t, len(kept[0].Conditions[0].Message), maxRefusal)
	run(t, &s)
	run(t, &same)
	said := condition(s.AddOn, manifestApplied)
	require.Contains(
		t, said,
		"False AddonManifestAppliedFailed: failed to apply the manifests of addon: ConfigMap default/b of manifestwork "+
			"c1/addon-web-deploy-0: metadata.namespace: must be set!!!",
	)
	require.Less(t, len(said), 2*maxRefusal)
	require.Equal(t, said, condition(same.AddOn, manifestApplied))
}
