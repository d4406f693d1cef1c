// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestPartsOfTheInstallationArePutBack(t *testing.T) {
	objects, err := partsOf(Config{Version: "v1"})
	require.NoError(t, err)
	all := []string{
		"Service cluster-manager-registration-webhook",
		"Service cluster-manager-work-webhook",
		"Service cluster-manager-addon-webhook",
		"Service cluster-manager-placement",
		"Service cluster-manager-proxy",
		"Namespace open-cluster-management-hub",
		"RoleBinding cluster-manager-components",
		"ServiceAccount addon-manager-controller-sa",
		"Service cluster-manager-placement",
	}
	const namespace = 5
	for name, tc := range map[string]struct {
		change func(*partsState)
		want   []string
	}{
		"nothing is there, rights come before what needs them": {func(*partsState) {}, all},
		"all is there": {func(s *partsState) {
			for i := range s.Parts {
				s.Parts[i].Kept = true
			}
		}, nil},
		"one is missing": {func(s *partsState) {
			for i := range s.Parts {
				s.Parts[i].Kept = i != 1
			}
		}, all[1:2]},
		"a namespace that is going gets nothing": {
			func(s *partsState) { s.Parts[namespace].Ending = true },
			all[:namespace],
		},
		"a hub that is being removed is not put back": {func(s *partsState) { s.ClusterManager = theManager(deleted) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := partsState{ClusterManager: theManager()}
			for _, u := range objects {
				s.Parts = append(s.Parts, part{Wanted: u})
			}
			tc.change(&s)
			var got []string
			for _, a := range reconcile.Of[reconcile.Apply](decideParts(s).Writes) {
				got = append(got, a.Object.(*unstructured.Unstructured).GetKind()+" "+a.Object.GetName())
			}
			require.Equal(t, tc.want, got)
		})
	}
}

func deleted(cm *operatorv1.ClusterManager) {
	at := metav1.NewTime(now)
	cm.DeletionTimestamp = &at
}

func TestAPartIsComparedByWhatItSays(t *testing.T) {
	objects, err := partsOf(Config{Version: "v1"})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		change []string
		value  any
		kept   bool
	}{
		"an API server adds":           {[]string{"spec", "clusterIP"}, "10.0.0.1", true},
		"its selector leads elsewhere": {[]string{"spec", "selector"}, map[string]any{"app": "other"}, false},
		"it lost its label":            {[]string{"metadata", "labels"}, map[string]any{}, false},
		"somebody annotates it":        {[]string{"metadata", "annotations"}, map[string]any{"a": "b"}, true},
		"a port was added that we have not": {
			[]string{"spec", "ports"},
			[]any{map[string]any{
				"port": int64(1),
			}, map[string]any{
				"port": int64(2),
			}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := objects[0].DeepCopy()
			delete(live.Object, "kind")
			require.NoError(t, unstructured.SetNestedField(live.Object, tc.value, tc.change...))
			require.Equal(t, tc.kept, keepPart(live, objects[0]).Kept)
		})
	}
}

func TestAComponentIsThereWhenItsDeploymentIsThatOfThisSpec(t *testing.T) {
	cm := theManager()
	cm.Generation = 7
	a := &assembly{assembled: assembled{generation: 7, specs: map[string]string{"web": "new"}}}
	require.True(t, a.has(cm, readiness{name: "web", spec: "new"}))
	require.False(t, a.has(cm, readiness{name: "web", spec: "old"}), "the watch does not show it yet")
	require.False(t, a.has(cm, readiness{name: "web"}))
	cm.Generation++
	require.False(t, a.has(cm, readiness{name: "web", spec: "new"}), "the other loop has not seen this spec")
}
