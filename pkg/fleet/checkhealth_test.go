// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// What stamped a lease is the hub, so that neither the clock of this machine nor the
// agent's counts.
func TestAgesAreMeasuredByTheClockOfTheHub(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", checkedAt.Format(http.TimeFormat))
	}))
	defer server.Close()
	c, err := Connect(&rest.Config{Host: server.URL}, "h")
	require.NoError(t, err)
	mine := checkedAt.Add(-24 * time.Hour)
	require.Equal(t, mine, c.now(mine), "nothing is known before the first answer")
	_, err = c.get(t.Context(), "/version")
	require.NoError(t, err)
	require.True(t, checkedAt.Equal(c.now(mine)))

	var lease unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal([]byte(`{kind: Lease, metadata: {name: l, managedFields: [
		{manager: somebody, time: "2026-11-21T11:59:59Z", fieldsV1: {"f:metadata": {"f:labels": {}}}},
		{manager: agent, time: "2026-11-21T11:59:00Z", fieldsV1: {"f:spec": {"f:renewTime": {}}}}]}, spec: {renewTime: "2026-11-22T00:00:00.000000Z"}}`), &lease.Object))
	require.Equal(t, "2026-11-21T11:59:00Z", arrived(&lease).UTC().Format(time.RFC3339), "the agent is half a day ahead")
	lease.SetManagedFields(nil)
	require.Equal(t, "2026-11-22T00:00:00Z", arrived(&lease).UTC().Format(time.RFC3339))
}

func TestADeploymentThatAsksForNoPodIsNotRolledOut(t *testing.T) {
	none := int32(0)
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &none}}
	ok, text := rolledOut(d)
	require.False(t, ok)
	require.Equal(t, "0/1 ready", text)
}

func TestWhatSomebodyElsePutIntoTheHubIsNamed(t *testing.T) {
	const fields = `managedFields: [{manager: kubectl-ocm, operation: Apply, fieldsV1: {"f:spec": {"f:replicas": {}, "f:template": {"f:image": {}}}}}]`
	const lost = `managedFields: [{manager: kubectl-ocm, operation: Apply, fieldsV1: {"f:spec": {"f:template": {}}}}]`
	for name, tc := range map[string]struct{ text, want string }{
		"as installed":              {`{metadata: {name: cluster-manager, ` + fields + `}, spec: {replicas: 1, template: {spec: {containers: [{name: cluster-manager, image: i}]}}}}`, ""},
		"a container before ours":   {`{metadata: {name: cluster-manager, ` + fields + `}, spec: {replicas: 1, template: {spec: {containers: [{name: x, image: j}, {name: cluster-manager, image: i}]}}}}`, "container x"},
		"an init container":         {`{metadata: {name: cluster-manager, ` + fields + `}, spec: {replicas: 1, template: {spec: {initContainers: [{name: x}], containers: [{name: cluster-manager, image: i}]}}}}`, "init container x"},
		"replicas and image":        {`{metadata: {name: cluster-manager, ` + lost + `}, spec: {replicas: 3, template: {spec: {containers: [{name: x, image: j}, {name: cluster-manager, image: bad}]}}}}`, "container x, replicas: 3, image bad"},
		"installed by another tool": {`{metadata: {name: cluster-manager}, spec: {replicas: 3, template: {spec: {containers: [{name: cluster-manager, image: mirror}]}}}}`, ""},
	} {
		var d appsv1.Deployment
		require.NoError(t, yaml.Unmarshal([]byte(tc.text), &d), name)
		require.Equal(t, tc.want, foreignParts(&d), name)
	}
}

func TestASetIsFilledByWhatItSelects(t *testing.T) {
	set := func(selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSet {
		s := &clusterv1beta2.ManagedClusterSet{}
		s.Name = "eu"
		if selector != nil {
			s.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.SelectorTypeLabelSelector, LabelSelector: selector}
		}
		return s
	}
	in := metav1.LabelSelectorRequirement{Key: "env", Operator: metav1.LabelSelectorOpIn, Values: []string{"prod", "test"}}
	not := metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"test"}}
	for name, tc := range map[string]struct {
		set      *clusterv1beta2.ManagedClusterSet
		clusters []string
		want     string
	}{
		"a set of its own label":         {set(nil), []string{"c1"}, "kubectl ocm clusterset add eu -c c1 --context h"},
		"many clusters":                  {set(nil), []string{"c1", "c2"}, "kubectl ocm clusterset add eu -c <cluster> --context h"},
		"a set of labels":                {set(&metav1.LabelSelector{MatchLabels: map[string]string{"b": "2", "a": "1"}, MatchExpressions: []metav1.LabelSelectorRequirement{in}}), []string{"c1"}, "kubectl label managedcluster c1 --overwrite a=1 b=2 env=prod --context h"},
		"a set that forbids labels, too": {set(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in, not}}), []string{"c1"}, "kubectl get managedclusterset eu -o yaml --context h      and change labels of a cluster so that spec.clusterSelector selects it"},
	} {
		require.Equal(t, tc.want, fillLine(tc.set, tc.clusters, &Cluster{Context: "h"}), name)
	}
}

// What is wrong with a thousand clusters is one line, and works are named.
func TestTheSameOfManyClustersIsFolded(t *testing.T) {
	var areas []CheckArea
	for i := range 998 {
		areas = append(areas, CheckArea{Name: fmt.Sprintf("cluster c%03d", i), Findings: []Finding{{Code: codeClusterJoining, Severity: SeverityWarning, Title: "accepted, and its agent has not reported"}}})
	}
	work := Finding{Code: codeClusterWorks, Severity: SeverityWarning, Title: "work web is not applied"}
	areas = append(areas, CheckArea{Name: "cluster w", Findings: []Finding{{Code: codeClusterJoining, Severity: SeverityError, Title: "another"}, work}})
	kept, lines := checkingAt().folded(areas)
	require.Len(t, kept, maxOfCode+1)
	require.Equal(t, CheckArea{Name: "cluster w", Findings: []Finding{work}}, kept[maxOfCode])
	want := []Finding{{Code: codeClusterJoining, Severity: SeverityError, Title: "on 989 more clusters", Cause: "accepted, and its agent has not reported",
		Fix: "kubectl ocm cluster list --status joining --context h"}}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
