// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// Leases are stamped by the hub, so neither the clock of this machine nor the agent's counts.
func TestAgesAreMeasuredByTheClockOfTheHub(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", checkedAt.Format(http.TimeFormat))
	}))
	defer server.Close()
	c, err := fleet.Connect(&rest.Config{Host: server.URL}, "h")
	require.NoError(t, err)
	mine := checkedAt.Add(-24 * time.Hour)
	require.Equal(t, mine, c.Now(mine), "nothing is known before the first answer")
	_, err = c.Get(t.Context(), "/version")
	require.NoError(t, err)
	require.True(t, checkedAt.Equal(c.Now(mine)))

	var lease unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal([]byte(`{kind: Lease, metadata: {name: l, managedFields: [
		{manager: somebody, time: "2026-11-21T11:59:59Z", fieldsV1: {"f:metadata": {"f:labels": {}}}},
		{manager: agent, time: "2026-11-21T11:59:00Z", fieldsV1: {"f:spec": {"f:renewTime": {}}}}]}, spec: {renewTime: "2026-11-22T00:00:00.000000Z"}}`),
		&lease.Object))
	require.Equal(t, "2026-11-21T11:59:00Z", cluster.Arrived(&lease).UTC().Format(time.RFC3339),
		"the agent is half a day ahead")
	lease.SetManagedFields(nil)
	require.Equal(t, "2026-11-22T00:00:00Z", cluster.Arrived(&lease).UTC().Format(time.RFC3339))
}

// What is wrong with a thousand clusters is one line; works are named.
func TestTheSameOfManyClustersIsFolded(t *testing.T) {
	var areas []Area
	for i := range 998 {
		areas = append(areas, Area{Name: fmt.Sprintf("cluster c%03d", i),
			Findings: []Finding{{Code: CodeClusterJoining, Severity: SeverityWarning,
				Title: "accepted, but its agent has not reported"}}})
	}
	work := Finding{Code: CodeClusterWorks, Severity: SeverityWarning, Title: "work web is not applied"}
	areas = append(areas, Area{Name: "cluster w",
		Findings: []Finding{{Code: CodeClusterJoining, Severity: SeverityError, Title: "another"}, work}})
	kept, lines := checkingAt().foldByCode(areas)
	require.Len(t, kept, maxOfCode+1)
	require.Equal(t, Area{Name: "cluster w", Findings: []Finding{work}}, kept[maxOfCode])
	want := []Finding{{Code: CodeClusterJoining, Severity: SeverityError, Title: "on 989 more clusters",
		Cause: "accepted, but its agent has not reported",
		Fix:   ListByStatus.On(atHub, "status", "joining")}}
	if diff := cmp.Diff(want, lines, byContext); diff != "" {
		t.Error(diff)
	}
}

// A work that fails on every cluster for the same reason is one problem too, and does not hide
// others of the same code.
func TestTheSameWorkOnManyClustersIsFolded(t *testing.T) {
	var areas []Area
	for i := range 998 {
		title := "work web is not applied: the cluster has no namespace shop"
		if i >= 996 {
			title = "work other is not applied: the cluster has no namespace bank"
		}
		areas = append(areas, Area{Name: fmt.Sprintf("cluster c%03d", i), Findings: []Finding{{Code: CodeWorkNamespace, Title: title}}})
	}
	kept, lines := checkingAt().foldByCode(areas)
	require.Len(t, kept, maxOfCode+2)
	require.Equal(t, "cluster c997", kept[maxOfCode+1].Name)
	require.Len(t, lines, 1)
	require.Equal(t, "so are 986 more works", lines[0].Title)
	require.Equal(t, "work web is not applied: the cluster has no namespace shop", lines[0].Cause)
}

func TestAProgramOfAnotherReleaseThanItsHubIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		program, image string
		fix            fleet.Fix
	}{
		"the same minor release": {program: "v0.3.1", image: "example.com/hub:v0.3.0"},
		"an older program":       {"v0.2.9", "example.com/hub:v0.3.0", UpgradeProgram.With("version", "v0.3.0")},
		"a newer program":        {"v0.4.0", "example.com/hub:v0.3.0", UpgradeHub.On(atHub, "version", "v0.4.0")},
		"one of development":     {program: "v0.0.0-dev", image: "example.com/hub:v0.3.0"},
		"an image without a tag": {program: "v0.4.0", image: "example.com/hub"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Labels = map[string]string{operatorv1.LabelCreatedByClusterManager: "cluster-manager"}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Image: tc.image}}
			c := checkingAt()
			c.o.Version = tc.program
			got, err := (&hubCheck{checking: c, runner: d}).program(t.Context())
			require.NoError(t, err)
			var want []Finding
			if tc.fix != nil {
				want = []Finding{{CodeProgramVersion, SeverityWarning, "this program is " + tc.program + ", and the hub v0.3.0",
					"a program and its hub are of the same minor release", tc.fix}}
			}
			if diff := cmp.Diff(want, got, byContext); diff != "" {
				t.Error(diff)
			}
		})
	}
}
