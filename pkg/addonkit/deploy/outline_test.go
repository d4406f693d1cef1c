// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// outlined is the state with outlines of its manifests, and slim works.
func outlined(t *testing.T, s State) State {
	t.Helper()
	s = slim(s)
	manifests := make([]addonkit.Manifest, len(s.Manifests))
	for i, m := range s.Manifests {
		o, err := OutlineOf(m).Manifest()
		require.NoError(t, err)
		require.Less(t, len(o.Raw), 100)
		manifests[i] = o
	}
	s.Manifests = manifests
	return s
}

func TestAnOutlineIsJudgedAsTheWholeManifest(t *testing.T) {
	s := state(t, "ConfigMap a size=3000", "Deployment b", "ConfigMap c size=200000", "ConfigMap d size=300000", "Job clean hook", "ConfigMap e orphan")
	run(t, &s)
	require.Equal(t, []string{addonv1alpha1.FinalizerPreDelete}, s.AddOn.Finalizers)
	plan := Decide(outlined(t, s))
	require.Equal(t, Decide(s), plan)
	require.False(t, Writes(plan), "nothing has changed")
	report(t, &s, "c1/addon-web-deploy-0", metav1.ConditionTrue, nil)
	report(t, &s, "c1/addon-web-deploy-1", metav1.ConditionTrue, nil)
	plan = Decide(outlined(t, s))
	require.Equal(t, Decide(s), plan)
	require.NotEqual(t, s.AddOn, plan.Object, "what the agent reports is told")

	for why, change := range map[string]func(*State){
		"another content":    func(s *State) { s.Manifests[0] = object(t, "ConfigMap a x=y") },
		"one more":           func(s *State) { s.Manifests = append(s.Manifests, object(t, "ConfigMap f")) },
		"one less":           func(s *State) { s.Manifests = s.Manifests[1:] },
		"one to leave alone": func(s *State) { s.Manifests[5] = object(t, "ConfigMap e") },
		"another mark":       func(s *State) { s.Mark = "{}" },
	} {
		other := s
		other.Manifests = append([]addonkit.Manifest{}, s.Manifests...)
		change(&other)
		require.True(t, Writes(Decide(outlined(t, other))), why)
	}
}

func TestAnOutlineSaysWhetherAWorkloadRuns(t *testing.T) {
	m, err := addonkit.Parse([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":0}}`))
	require.NoError(t, err)
	o, err := OutlineOf(m).Manifest()
	require.NoError(t, err)
	require.Equal(t, m.ID, o.ID)
	require.Equal(t, len(m.Raw), o.Bytes())
	require.Equal(t, map[string]any{"replicas": int64(0)}, o.Object.Object["spec"])
}
