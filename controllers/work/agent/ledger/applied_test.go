// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// listed serves one list of AppliedManifestWorks to a ledger, and no watch.
func listed(t *testing.T, items ...string) *Applied {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		list := `{"kind":"AppliedManifestWorkList","apiVersion":"work.open-cluster-management.io/v1","metadata":{"resourceVersion":"1"},"items":[`
		for i, item := range items {
			if i > 0 {
				list += ","
			}
			list += item
		}
		_, _ = w.Write([]byte(list + "]}"))
	}))
	t.Cleanup(api.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	a := NewApplied(client, Identity{HubHash: "hub", AgentID: "me"}, logr.Discard(), func(string) {})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	require.NoError(t, a.WaitSynced(t.Context()))
	return a
}

// record is an AppliedManifestWork of an agent, with more in its metadata.
func record(name, agent, more, status string) string {
	return fmt.Sprintf(`{"kind":"AppliedManifestWork","apiVersion":"work.open-cluster-management.io/v1",
		"metadata":{"name":%q,"uid":"9f0bd1f4-1c1a-4a0e-9d8e-0f4b6b6c2a11","resourceVersion":"7"%s},
		"spec":{"hubHash":"hub","agentID":%q,"manifestWorkName":"w"},"status":{%s}}`, name, more, agent, status)
}

func TestARecordIsReadAsItStands(t *testing.T) {
	text := record("hub-w", "me", `,"labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["f"],"deletionTimestamp":"2026-08-01T12:00:00Z"`,
		`"evictionStartTime":"2026-08-01T11:00:00Z","appliedResources":[
		{"group":"apps","version":"v1","resource":"deployments","namespace":"n","name":"a","uid":"0f0bd1f4-1c1a-4a0e-9d8e-0f4b6b6c2a11"},
		{"version":"v1","resource":"configmaps","namespace":"n","name":"b","uid":"no usual one"},
		{"version":"v1","resource":"namespaces","name":"c"}]`)
	a := listed(t, text, record("other", "me", "", ""), record("foreign", "you", "", ""))
	got, err := json.Marshal(a.Get("hub-w"))
	require.NoError(t, err)
	want := &workv1.AppliedManifestWork{}
	require.NoError(t, json.Unmarshal([]byte(text), want))
	full, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, string(full), string(got))
	require.Nil(t, a.Get("none"))
	require.ElementsMatch(t, []string{"hub-w", "other", "foreign"}, a.Names(), "of this agent or of this hub")
}

func TestRecordsOfMissedWorksAreCounted(t *testing.T) {
	missed := `"evictionStartTime":"2026-08-01T11:00:00Z"`
	a := listed(t, record("a", "me", "", ""), record("b", "me", "", missed), record("c", "you", "", missed),
		record("d", "me", `,"deletionTimestamp":"2026-08-01T12:00:00Z"`, missed))
	require.Equal(t, Count{Known: 2, Missed: 1}, a.Count())
	own := a.Get("b")
	own.Status.EvictionStartTime = nil
	a.remember(own)
	require.Equal(t, Count{Known: 2}, a.Count(), "what we wrote last counts")
}

func TestARecordThatTheWatchDoesNotShowYetCountsAndKeepsItsNamespace(t *testing.T) {
	a := listed(t, record("hub-w", "me", "", ""))
	none := func(string) bool { return false }
	require.Empty(t, a.Inhabited("shared", "w", none))
	tenant := &workv1.AppliedManifestWork{}
	lives := `"appliedResources":[{"version":"v1","resource":"configmaps","namespace":"shared","name":"lives"}]`
	require.NoError(t, json.Unmarshal([]byte(record("hub-tenant", "me", "", lives)), tenant))
	tenant.Spec.ManifestWorkName = "tenant"
	a.remember(tenant)
	require.Equal(t, "namespace shared stays, because it holds objects of other works: tenant", a.Inhabited("shared", "w", none))
	require.Empty(t, a.Inhabited("shared", "tenant", none), "a work does not keep its own namespace")
	require.Empty(t, a.Inhabited("shared", "w", func(work string) bool { return work == "tenant" }))
	require.Equal(t, Count{Known: 2}, a.Count())
	require.ElementsMatch(t, []string{"hub-w", "hub-tenant"}, a.Names())

	tenant = tenant.DeepCopy()
	tenant.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	a.remember(tenant)
	require.Empty(t, a.Inhabited("shared", "w", none), "its work is being removed")
	require.Equal(t, Count{Known: 1}, a.Count())
}

func TestARecordTakesLittleMemory(t *testing.T) {
	var words packed.Dictionary
	work := &workv1.AppliedManifestWork{}
	require.NoError(t, json.Unmarshal([]byte(record("hub-w", "me", `,"finalizers":["`+workv1.FinalizerAppliedManifestWork+`"]`, "")), work))
	for i := range 10 {
		work.Status.AppliedResources = append(work.Status.AppliedResources, workv1.AppliedManifestResourceMeta{
			Version: "v1", Resource: "configmaps", Namespace: "default", Name: fmt.Sprint("load-17-", i), UID: "9f0bd1f4-1c1a-4a0e-9d8e-0f4b6b6c2a11",
		})
	}
	other := work.DeepCopy()
	other.UID, other.Status.AppliedResources = "other", other.Status.AppliedResources[:1]
	words.Pack(other)
	data := words.Pack(work)
	t.Logf("%d bytes", len(data))
	require.Less(t, len(data), 400)
}
