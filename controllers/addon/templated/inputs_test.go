// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// settings returns a reference to an AddOnDeploymentConfig with a value of V.
func settings(name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: supported[0], ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: name},
	}
}

func reference(at addonv1alpha1.AddOnConfig, hash string) addonv1alpha1.ConfigReference {
	return addonv1alpha1.ConfigReference{
		ConfigGroupResource: at.ConfigGroupResource,
		DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: at.ConfigReferent, SpecHash: hash},
	}
}

// TestInputs shows that the inputs are exactly what a rendering reads: anything else changes
// neither.
func TestInputs(t *testing.T) {
	image := func(hash string) config.Content {
		return config.Content{Hash: hash, Spec: fmt.Sprintf(`{"addonName":"hello","agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"Pod",
			"metadata":{"namespace":"default","name":"a"},"spec":{"containers":[
				{"name":"a","image":"quay.io/a/b:%s","args":["{{V}}","{{CLUSTER_NAME}}"]}]}}]}}}`, hash)}
	}
	variable := func(hash string) config.Content {
		return config.Content{Hash: hash, Spec: fmt.Sprintf(`{"customizedVariables":[{"name":"V","value":%q}]}`, hash)}
	}
	now := said{hello(): image("1"), settings("a"): variable("a1"), settings("b"): variable("b1")}
	f := newTest(now)
	instance := func() addonkit.Instance {
		a := given("1")
		a.Status.ConfigReferences = append(
			a.Status.ConfigReferences, reference(settings("a"), "a1"), reference(settings("b"), "b1"),
		)
		return addonkit.Instance{AddOn: a, Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}}
	}
	look := func(i addonkit.Instance) (inputs, result string) {
		addOn, ok := f.addOnOf(i.AddOn)
		require.True(t, ok)
		inputs, told := addOn.(addonkit.Traced).Inputs(i)
		require.True(t, told)
		objects, err := addOn.Manifests(t.Context(), i)
		raw, encoding := json.Marshal(objects)
		require.NoError(t, encoding)
		return inputs, fmt.Sprint(string(raw), err)
	}
	inputs, result := look(instance())
	for what, change := range map[string]func(i addonkit.Instance){
		"the template": func(i addonkit.Instance) {
			now[hello()] = image("2")
			i.AddOn.Status.ConfigReferences[0] = reference(hello(), "2")
		},
		"a configuration": func(i addonkit.Instance) {
			now[settings("a")] = variable("a2")
			i.AddOn.Status.ConfigReferences[1] = reference(settings("a"), "a2")
		},
		"their order":   func(i addonkit.Instance) { r := i.AddOn.Status.ConfigReferences; r[1], r[2] = r[2], r[1] },
		"none any more": func(i addonkit.Instance) { i.AddOn.Status.ConfigReferences = i.AddOn.Status.ConfigReferences[:1] },
		"the hosting annotation": func(i addonkit.Instance) {
			i.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: "h"}
		},
		"the cluster's name": func(i addonkit.Instance) { i.Cluster.Name = "c2" },
		"its registries": func(i addonkit.Instance) {
			i.Cluster.Annotations = map[string]string{
				clusterv1.AnnotationImageRegistries: `{"registries":[{"source":"quay.io/a","mirror":"m"}]}`,
			}
		},
	} {
		changed := instance()
		change(changed)
		otherInputs, otherResult := look(changed)
		require.NotEqual(t, result, otherResult, "%s: rendering reads it", what)
		require.NotEqual(t, inputs, otherInputs, what)
	}

	other := instance()
	other.AddOn.Labels, other.AddOn.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
	other.AddOn.Generation, other.AddOn.ResourceVersion, other.AddOn.Spec.InstallNamespace = 7, "7", "elsewhere"
	other.AddOn.Status.Namespace, other.AddOn.Status.Conditions = "elsewhere", []metav1.Condition{{Type: "Any"}}
	other.AddOn.Status.ConfigReferences[0].LastAppliedConfig = &addonv1alpha1.ConfigSpecHash{SpecHash: "0"}
	other.Cluster.Labels, other.Cluster.ResourceVersion = map[string]string{"a": "b"}, "7"
	other.Cluster.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown},
	}
	otherInputs, otherResult := look(other)
	require.Equal(t, result, otherResult)
	require.Equal(t, inputs, otherInputs, "a status is not an input")

	missing := instance()
	missing.AddOn.Status.ConfigReferences[0] = reference(hello(), "")
	addOn, ok := f.addOnOf(missing.AddOn)
	require.True(t, ok)
	_, told := addOn.(addonkit.Traced).Inputs(missing)
	require.False(t, told, "a missing object is read again in each pass")
}
