// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/adopt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	between "github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// TestAHubIsAdoptedAndGivenBack moves a hub from OCM's operator to ours and back, with the
// commands of the guide and with runs that die, while a cluster is joined and has works.
func TestAHubIsAdoptedAndGivenBack(t *testing.T) {
	t.Parallel()
	onHub := harness.FreshWithNode(t, "hub", otherHubImages(t))
	spoke := harness.FreshWithNode(t, "spoke", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})
	kubeconfig(t, onHub, spoke)
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	require.Zero(t, run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "5m").code)
	greet := func(text string) {
		body := strings.ReplaceAll(configMap, "hello", text)
		require.Zero(t, runWith(t, body, "work", "apply", "web", "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m").code)
	}
	greet("hello")
	handHubOver(t, onHub)
	reader := readerOf(t, onHub)
	before := contents(t, onHub)
	instances := map[string]map[string]string{"clusters": uids(t, onHub, clusters), "works": uids(t, onHub, works), "requests": uids(t, onHub, requests),
		"objects": running(t, spoke), "records": uids(t, spoke, workRecord), "managers": uids(t, onHub, managers), "accounts": bootstrapAccount(t, onHub)}
	notice, leases := watchHub(t, onHub), watchRenewals(t, onHub, "cluster1")

	refused := run(t, "hub", "init", "--context", "hub")
	require.Equal(t, 6, refused.code)
	require.Contains(t, refused.err, "deployment open-cluster-management/cluster-manager runs quay.io/open-cluster-management/registration-operator:v1.3.1")
	require.Contains(t, refused.err, "kubectl ocm hub init --adopt --plan --context hub")
	require.Equal(t, 6, run(t, "hub", "upgrade", "--context", "hub").code)
	require.Contains(t, run(t, "hub", "upgrade", "--context", "hub", "--back-out").err, "this hub was not adopted")
	hubRefusals(t, onHub, reader)
	look, move, plan, back := hubLines(t)
	showPlan(t, look)
	sameContents(t, before, contents(t, onHub))

	dieOften(t, onHub)
	typeLine(t, move)
	require.Contains(t, run(t, "hub", "init", "--adopt", "--context", "hub").out, "unchanged")
	notice.nothing(t)
	list, err := onHub.Dynamic(t).Resource(deployments).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1, "only our process runs")
	kept := func() {
		t.Helper()
		require.Equal(t, instances, map[string]map[string]string{"clusters": uids(t, onHub, clusters), "works": uids(t, onHub, works),
			"requests": uids(t, onHub, requests), "objects": running(t, spoke), "records": uids(t, spoke, workRecord),
			"managers": uids(t, onHub, managers), "accounts": bootstrapAccount(t, onHub)})
	}
	kept()
	var was, is map[string]any
	require.NoError(t, json.Unmarshal([]byte(before["ClusterManager /cluster-manager"]), &was))
	require.NoError(t, json.Unmarshal([]byte(contents(t, onHub)["ClusterManager /cluster-manager"]), &is))
	require.Equal(t, was["spec"], is["spec"])
	greet("from our hub")
	well(t, "hub", "--context", "hub")
	noKeys(t, onHub)

	require.Contains(t, typeLine(t, plan), "restored")
	typeLine(t, back)
	kept()
	sameContents(t, before, contents(t, onHub))
	leases.noneMissed(t, false)
	notice.end()
	require.Empty(t, notice.lost, "the cluster was not available")
}

// sameContents checks that nothing differs, and names what does.
func sameContents(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name := range before {
		if before[name] != after[name] {
			t.Errorf("%s was\n%s\nand is\n%s", name, before[name], after[name])
		}
	}
	for name := range after {
		if before[name] == "" {
			t.Errorf("%s is new: %s", name, after[name])
		}
	}
}

// hubLines returns the commands of the guide for a hub: to look, to move it, and the way back.
func hubLines(t *testing.T) (look, move, plan, back string) {
	t.Helper()
	var lines []string
	for _, line := range commandsOf(t) {
		if strings.HasPrefix(line, "kubectl ocm hub ") {
			lines = append(lines, line)
		}
	}
	require.Len(t, lines, 4)
	return lines[0], lines[1], lines[2], lines[3]
}

// commandsOf returns the commands of the guide.
func commandsOf(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/guides/moving-from-ocm.md")
	require.NoError(t, err)
	var lines []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(line, "kubectl ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// showPlan checks what the plan says, as a table and as JSON.
func showPlan(t *testing.T, line string) {
	t.Helper()
	table := typeLine(t, line)
	fates := map[string]string{}
	for row := range strings.Lines(table) {
		if words := strings.Fields(row); len(words) > 2 {
			fates[words[1]+" "+words[2]] = words[0]
		}
	}
	for object, fate := range map[string]string{
		"deployment.apps/cluster-manager open-cluster-management":                                       "replaced",
		"deployment.apps/cluster-manager-registration-controller open-cluster-management-hub":           "removed",
		"deployment.apps/cluster-manager-work-webhook open-cluster-management-hub":                      "removed",
		"serviceaccount/registration-controller-sa open-cluster-management-hub":                         "removed",
		"serviceaccount/agent-registration-bootstrap open-cluster-management":                           "replaced",
		"clustermanager.operator.open-cluster-management.io/cluster-manager -":                          "kept",
		"managedcluster.cluster.open-cluster-management.io/* -":                                         "kept",
		"manifestwork.work.open-cluster-management.io/* -":                                              "kept",
		"secret/signer-secret open-cluster-management-hub":                                              "kept",
		"customresourcedefinition.apiextensions.k8s.io/manifestworks.work.open-cluster-management.io -": "replaced",
		"clusterrole.rbac.authorization.k8s.io/open-cluster-management:cluster-manager-work:webhook -":  "removed",
		"clusterrole.rbac.authorization.k8s.io/cluster-manager-token-driver -":                          "added",
		"service/cluster-manager-registration-webhook open-cluster-management-hub":                      "removed",
		"service/cluster-manager-registration-webhook open-cluster-management":                          "added",
	} {
		require.Equal(t, fate, fates[object], object)
	}
	var plan struct {
		Kind, From string
		Items      []struct{ Object, Fate string }
	}
	require.NoError(t, json.Unmarshal([]byte(run(t, append(strings.Fields(line)[2:], "-o", "json")...).out), &plan))
	require.Equal(t, "AdoptionPlan", plan.Kind)
	require.Equal(t, "quay.io/open-cluster-management/registration-operator:v1.3.1", plan.From)
	require.Greater(t, len(plan.Items), 60)
}

// hubRefusals plants what cannot be adopted, one after the other, and checks that it says so.
func hubRefusals(t *testing.T, onHub *harness.Cluster, reader *rest.Config) {
	t.Helper()
	client := onHub.Dynamic(t)
	refused := func(causes ...string) {
		t.Helper()
		got := run(t, "hub", "init", "--adopt", "--context", "hub")
		require.Equal(t, 6, got.code)
		for _, cause := range append(causes, "fix: ") {
			require.Contains(t, got.err, cause)
		}
	}
	both := func(plant, undo string, causes ...string) {
		t.Helper()
		patched(t, onHub, managers, "", "cluster-manager", plant)
		refused(causes...)
		patched(t, onHub, managers, "", "cluster-manager", undo)
	}
	both(`{"spec":{"deployOption":{"mode":"Hosted"}}}`, `{"spec":{"deployOption":{"mode":"Default"}}}`, "it is hosted")
	both(`{"spec":{"registrationConfiguration":{"registrationDrivers":[{"authType":"grpc"}]}}}`, `{"spec":{"registrationConfiguration":null}}`, "by driver grpc")
	both(`{"spec":{"workConfiguration":{"workDriver":"mqtt"}}}`, `{"spec":{"workConfiguration":{"workDriver":"kube"}}}`, "by driver mqtt")
	refused("its operator has not seen the last change")
	cm, err := client.Resource(managers).Get(t.Context(), "cluster-manager", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(cm.Object, cm.GetGeneration(), "status", "observedGeneration"))
	_, err = client.Resource(managers).UpdateStatus(t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(t, err)

	other := object("operator.open-cluster-management.io/v1", "ClusterManager", "", "second", nil)
	_, err = client.Resource(managers).Create(t.Context(), other, metav1.CreateOptions{})
	require.NoError(t, err)
	refused("cluster-manager, second")
	require.NoError(t, client.Resource(managers).Delete(t.Context(), "second", metav1.DeleteOptions{}))

	patched(t, onHub, deployments, operatorSpace, "cluster-manager", `{"metadata":{"labels":{"olm.owner":"cluster-manager.v1.3.1"}}}`)
	refused("the Operator Lifecycle Manager would put its operator back", "kubectl delete clusterserviceversion cluster-manager.v1.3.1")
	patched(t, onHub, deployments, operatorSpace, "cluster-manager", `{"metadata":{"labels":{"olm.owner":null}}}`)
	const works = "manifestworks.work.open-cluster-management.io"
	patched(t, onHub, definitions, "", works, `{"metadata":{"annotations":{"`+versionMark+`":"1.4.0"}}}`)
	refused("it is of release 1.4.0, which is newer than 1.3")
	patched(t, onHub, definitions, "", works, `{"metadata":{"annotations":{"`+versionMark+`":"1.3.1"}}}`)
	c, err := fleet.Connect(reader, "hub")
	require.NoError(t, err)
	_, err = adopt.Hub(t.Context(), adopt.Options{InitOptions: hub.InitOptions{Hub: c, Version: version.Get()}})
	require.ErrorContains(t, err, "you lack rights")
}

// readerOf returns the configuration of a user who may read everything and write nothing.
func readerOf(t *testing.T, onHub *harness.Cluster) *rest.Config {
	t.Helper()
	config := onHub.As(t, "default", "reader")
	for _, u := range []*unstructured.Unstructured{
		object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "reader", map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"get", "list", "watch"}}}}),
		object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "reader", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "default", "name": "reader"}}}),
	} {
		_, err := onHub.Dynamic(t).Resource(otherResource(u)).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return config
}

// dieOften runs adoptions that die after ever more writes, and then before they end what
// decides and what admits for the other hub.
func dieOften(t *testing.T, onHub *harness.Cluster) {
	t.Helper()
	died := errors.New("the process is dead")
	for _, last := range []string{"1", "2", "5", "14", "registration-controller", "registration-webhook"} {
		left, err := strconv.Atoi(last)
		if err != nil {
			left = math.MaxInt
		}
		ctx, kill := context.WithCancel(t.Context())
		config, process := between.Count(onHub.Config)
		var mu sync.Mutex
		process.Fail(func(_ string, r *http.Request) error {
			mu.Lock()
			defer mu.Unlock()
			dry := strings.Contains(r.URL.RawQuery, "dryRun") || strings.Contains(r.URL.Path, "selfsubjectaccessreviews")
			ends := r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/deployments/cluster-manager-"+last)
			if left == 0 || ends {
				left = 0
				kill()
				return died
			}
			if r.Method != http.MethodGet && !dry {
				left--
			}
			return nil
		})
		c, err := fleet.Connect(config, "hub")
		require.NoError(t, err)
		_, err = adopt.Hub(ctx, adopt.Options{InitOptions: hub.InitOptions{Hub: c, Version: version.Get(), Replicas: 1}})
		kill()
		t.Logf("died at %s: %v", last, err)
		require.Error(t, err)
	}
}

// noKeys checks that the record holds no Secret and no private key.
func noKeys(t *testing.T, onHub *harness.Cluster) {
	t.Helper()
	u, err := onHub.Dynamic(t).Resource(configMaps).Namespace(operatorSpace).Get(t.Context(), "hub-adoption", metav1.GetOptions{})
	require.NoError(t, err)
	text := unzipped(t, u)
	require.Contains(t, text, `"kind":"Deployment"`)
	require.NotContains(t, text, `"kind":"Secret","metadata"`)
	require.NotContains(t, text, "PRIVATE KEY")
}

func bootstrapAccount(t *testing.T, onHub *harness.Cluster) map[string]string {
	t.Helper()
	u, err := onHub.Dynamic(t).Resource(accounts).Namespace(operatorSpace).Get(t.Context(), "agent-registration-bootstrap", metav1.GetOptions{})
	require.NoError(t, err)
	return map[string]string{u.GetName(): string(u.GetUID())}
}

// admitted writes a ManagedCluster and a ManifestWork without storing them; the error is that
// of the API server.
func admitted(ctx context.Context, client dynamic.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	dry := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
	mc, err := client.Resource(clusters).Get(ctx, "cluster1", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, err := client.Resource(clusters).Update(ctx, mc, dry); err != nil {
		return err
	}
	list, err := client.Resource(works).Namespace("cluster1").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return errors.Join(err, errors.New("there are no works"))
	}
	_, err = client.Resource(works).Namespace("cluster1").Update(ctx, &list.Items[0], dry)
	return err
}

// hubWatch notices what an administrator and an agent would notice of a hub that moves.
type hubWatch struct {
	stop    func()
	stalls  *harness.Stalls
	running sync.WaitGroup
	mu      sync.Mutex
	// away is the longest time in which writes failed, lost is set when Available was. What happens
	// because the machine stood still does not count.
	away time.Duration
	lost string
	why  error
	// asked is the number of times that they did not.
	asked int
}

func watchHub(t *testing.T, onHub *harness.Cluster) *hubWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &hubWatch{stop: cancel, stalls: harness.WatchStalls(ctx)}
	client := onHub.Dynamic(t)
	w.running.Go(func() { w.availability(ctx, client.Resource(clusters)) })
	w.running.Go(func() { w.writes(ctx, client) })
	t.Cleanup(w.end)
	return w
}

// availability follows the cluster, so that no moment in which it was not available is missed.
func (w *hubWatch) availability(ctx context.Context, api dynamic.ResourceInterface) {
	for ctx.Err() == nil {
		events, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=cluster1"})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		for event := range events.ResultChan() {
			mc, ok := event.Object.(*unstructured.Unstructured)
			if ok && mc.GetKind() == "ManagedCluster" && !fleet.ConditionTrue(mc, "ManagedClusterConditionAvailable") &&
				!w.stalls.Excuse(time.Now(), time.Minute) {
				w.mu.Lock()
				w.lost = time.Now().String()
				w.mu.Unlock()
			}
		}
	}
}

// writes asks again and again whether writes are admitted.
func (w *hubWatch) writes(ctx context.Context, client dynamic.Interface) {
	good := time.Now()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := admitted(ctx, client)
		w.mu.Lock()
		switch away := time.Since(good) - w.stalls.Lost(good, time.Now()); {
		case err == nil:
			good = time.Now()
			w.asked++
		case ctx.Err() == nil && away > w.away:
			w.away, w.why = away, err
		}
		w.mu.Unlock()
	}
}

// nothing checks that the cluster was available all the time, and that no write failed for long.
func (w *hubWatch) nothing(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("writes failed for at most %s: %v", w.away, w.why)
	require.Empty(t, w.lost, "the cluster was not available")
	require.Greater(t, w.asked, 10)
	require.Less(t, w.away, 10*time.Second, "writes failed: %v", w.why)
}

// end stops it.
func (w *hubWatch) end() {
	w.stop()
	w.running.Wait()
}

func unzipped(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, _, _ := unstructured.NestedString(u.Object, "binaryData", "objects.json.gz")
	packed, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	raw, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(raw)
}
