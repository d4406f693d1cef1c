// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/canary"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// canaryLabel is on every canary.
const canaryLabel = "open-cluster-management.io/kubectl-ocm-canary"

// canaries sends canaries to the real agent of cluster1, removes that of a killed run, and grants a
// user the rights that it takes.
func canaries(t *testing.T, hub, spoke *harness.Cluster) {
	client := hub.Dynamic(t)
	killed := object(works.GroupVersion().String(), "ManifestWork", "cluster1", "kubectl-ocm-canary-killed", map[string]any{"spec": map[string]any{
		"workload": map[string]any{"manifests": []any{
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kubectl-ocm-canary-killed", "namespace": "default"}},
		}},
	}})
	killed.SetLabels(map[string]string{canaryLabel: "killed"})
	_, err := client.Resource(works).Namespace("cluster1").Create(t.Context(), killed, metav1.CreateOptions{})
	require.NoError(t, err)

	got := run(t, "check", "cluster", "cluster1", "--e2e", "--context", "hub", "-o", "json")
	require.Zero(t, got.code)
	require.Contains(t, got.out, "1 work of an earlier run removed: cluster1/kubectl-ocm-canary-killed")
	var report struct{ Canaries []canary.Flight }
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	require.Len(t, report.Canaries, 1)
	f := report.Canaries[0]
	require.Equal(t, "cluster1", f.Cluster)
	require.Positive(t, f.Applied)
	require.GreaterOrEqual(t, f.Reported, f.Applied)
	require.Positive(t, f.Gone)
	eventually(t, func() bool { return len(canariesOn(t, client)) == 0 }, patience, 100*time.Millisecond)
	_, err = spoke.Dynamic(t).Resource(configMaps).Namespace("default").Get(t.Context(), f.Work, metav1.GetOptions{})
	require.ErrorContains(t, err, "not found")

	// Rights are said, and granted by the printed lines.
	newcomer := []string{"cluster", "cluster1", "--e2e", "--as", "newcomer", "--context", "hub"}
	no := found(t, "OCM0610", newcomer...)
	require.Contains(t, no.Cause, "you lack: create manifestworks")
	grant, _, _ := strings.Cut(no.Fix, "      ")
	for _, line := range strings.Split(grant, " && ") {
		typeLine(t, line+" --context hub")
	}
	typeLine(t, "kubectl create clusterrole newcomer-looks --verb=get,list --resource=managedclusters.cluster.open-cluster-management.io --context hub")
	typeLine(t, "kubectl create clusterrolebinding newcomer-looks --clusterrole=newcomer-looks --user=newcomer --context hub")
	eventually(t, func() bool {
		said := run(t, append([]string{"check"}, newcomer...)...)
		return !strings.Contains(said.out, "OCM061") && strings.Contains(said.out, "cluster1: applied in ")
	}, patience, 500*time.Millisecond)
	typeLine(t, "kubectl delete clusterrole,clusterrolebinding kubectl-ocm-canary newcomer-looks --context hub")
}

// canariesOn returns the names of all canaries of a hub.
func canariesOn(t *testing.T, client dynamic.Interface) []string {
	t.Helper()
	list, err := client.Resource(works).List(t.Context(), metav1.ListOptions{LabelSelector: canaryLabel})
	require.NoError(t, err)
	var out []string
	for _, u := range list.Items {
		out = append(out, u.GetName())
	}
	return out
}

// TestACanaryThatIsLostLeavesNothing sends canaries to clusters whose agents are silent, or never
// finish: what is wrong is said, an interrupt ends the check at once, and nothing else is touched.
func TestACanaryThatIsLostLeavesNothing(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	for _, name := range []string{"canary1", "canary2"} {
		reports(t, client, registers(t, client, name, true), "True")
		_, err := client.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", "", name, nil), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	others := client.Resource(works).Namespace("canary1")
	for name, labels := range map[string]map[string]string{
		"kubectl-ocm-canary-unlabelled": nil,
		"labelled":                      {canaryLabel: "of-somebody"},
	} {
		u := object(works.GroupVersion().String(), "ManifestWork", "canary1", name, map[string]any{"spec": map[string]any{}})
		u.SetLabels(labels)
		_, err := others.Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = others.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	}
	o := canary.Options{Hub: connected(t, hub), Clusters: []string{"canary1", "canary2"}, Patience: time.Second}

	// On a busy machine a short patience is over before the hub has shown what was sent, or that it is gone.
	flights := canary.Send(t.Context(), o)
	silent := func(f canary.Flight) bool { return f.Lost == "the agent has not answered" && f.Stuck == "" }
	for patient := o; slices.ContainsFunc(flights, func(f canary.Flight) bool { return !silent(f) }); flights = canary.Send(t.Context(), patient) {
		patient.Patience *= 3
		require.Less(t, patient.Patience, time.Minute, "%+v", flights)
	}
	require.Equal(t, []string{"labelled"}, canariesOn(t, client))

	// One that the hub has not even shown in time is not back.
	hasty := o
	hasty.Patience = time.Nanosecond
	for _, f := range canary.Send(t.Context(), hasty) {
		require.NotEmpty(t, f.Lost)
	}
	eventually(t, func() bool { return slices.Equal([]string{"labelled"}, canariesOn(t, client)) }, patience, 50*time.Millisecond)

	// An interrupt deletes what is on its way, and does not wait.
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	seen, err := client.Resource(works).Watch(t.Context(), metav1.ListOptions{LabelSelector: canaryLabel})
	require.NoError(t, err)
	go func() {
		for event := range seen.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); ok && u.GetName() != "labelled" {
				interrupt()
				seen.Stop()
			}
		}
	}()
	var out, errs bytes.Buffer
	started, stalls := time.Now(), harness.WatchStalls(t.Context())
	code := app.Run(ctx, app.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Clock: clock.RealClock{}, Getenv: func(string) string { return "" }},
		[]string{"kubectl-ocm", "--kubeconfig", configOf(t), "check", "cluster", "canary1", "canary2", "--e2e", "--context", "hub"})
	require.Equal(t, 1, code, errs.String())
	require.Contains(t, errs.String(), "error: interrupted")
	require.Less(t, time.Since(started)-stalls.Lost(started, time.Now()), 30*time.Second, "it does not wait for the agents")
	require.Equal(t, []string{"labelled"}, canariesOn(t, client))

	// An agent that reports and never finishes its deletion.
	agentOf(t, client, "canary1")
	o.Clusters = o.Clusters[:1]
	f := canary.Send(t.Context(), o)[0]
	giveUp := func() {
		typeLine(t, fmt.Sprintf("kubectl ocm work delete %s -c canary1 --force --context hub", f.Work))
	}
	for ; f.Lost != ""; f = canary.Send(t.Context(), o)[0] {
		if f.Stuck != "" {
			giveUp()
		}
		o.Patience *= 3
		require.Less(t, o.Patience, time.Minute, "%+v", f)
	}
	require.Equal(t, "its agent has not removed it within "+o.Patience.String(), f.Stuck)
	eventually(t, func() bool {
		removed, stuck, err := canary.Sweep(t.Context(), o)
		return err == nil && len(removed) == 0 && len(stuck) == 1 && stuck[0].Work == f.Work
	}, patience, 200*time.Millisecond)
	giveUp()
	require.Equal(t, []string{"labelled"}, canariesOn(t, client))
	_, err = others.Get(t.Context(), "kubectl-ocm-canary-unlabelled", metav1.GetOptions{})
	require.NoError(t, err)
}

// agentOf answers like an agent that puts its finalizer on a canary and reports it.
func agentOf(t *testing.T, client dynamic.Interface, cluster string) {
	t.Helper()
	api := client.Resource(works).Namespace(cluster)
	seen, err := api.Watch(t.Context(), metav1.ListOptions{LabelSelector: canaryLabel})
	require.NoError(t, err)
	t.Cleanup(seen.Stop)
	go func() {
		for event := range seen.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type != "ADDED" || u.GetName() == "labelled" {
				continue
			}
			finalizer := `{"metadata":{"finalizers":["cluster.open-cluster-management.io/manifest-work-cleanup"]}}`
			if _, err := api.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(finalizer), metav1.PatchOptions{}); err != nil {
				continue
			}
			condition := func(kind string) string {
				return `{"type":"` + kind + `","status":"True","reason":"Test","message":"","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"}`
			}
			both := condition("Applied") + "," + condition("Available")
			status := fmt.Sprintf(`{"status":{"conditions":[%s],"resourceStatus":{"manifests":[{"resourceMeta":{"ordinal":0,"resource":"configmaps",`+
				`"version":"v1","kind":"ConfigMap","name":%q,"namespace":"default"},"conditions":[%s],"statusFeedback":{"values":[`+
				`{"name":"run","fieldValue":{"type":"String","string":%q}}]}}]}}}`, both, u.GetName(), both, u.GetLabels()[canaryLabel])
			_, _ = api.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		}
	}()
}

// connected opens a cluster for the library.
func connected(t *testing.T, c *harness.Cluster) *library.Cluster {
	t.Helper()
	out, err := library.Connect(c.Config, "hub")
	require.NoError(t, err)
	return out
}
