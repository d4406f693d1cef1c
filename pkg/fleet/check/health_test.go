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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

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
