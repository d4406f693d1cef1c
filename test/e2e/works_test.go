// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// TestWorks sends works to a cluster and checks what happens to them there, with pods
// that really run.
func TestWorks(t *testing.T) {
	w := &works{fleet: startFleet(t, "c1"), app: manifests(t, "shop")}
	story(t,
		chapter{"a hub and a cluster", w.join},
		chapter{"an application is delivered and serves", w.deploy},
		chapter{"what is there is as the work says, and can be traced back", w.look},
		chapter{"a definition and its objects travel in one work", w.definition},
		chapter{"a job that is done takes its work along", w.job},
		chapter{"a scaler keeps its replicas and everything else is kept as declared", w.scaler},
		chapter{"a work does what its executor may", w.executor},
		chapter{"the agent is killed in the middle of two hundred objects", w.kill},
		chapter{"the hub is away for a minute", w.outage},
		chapter{"deleted works leave nothing behind", w.delete},
		chapter{"the guide tells nothing else", func(t *testing.T) { w.requireTyped(t, workGuide, 13) }},
	)
}

// workGuide is the guide whose commands the chapters run.
const workGuide = "docs/guides/work.md"

// works is the state that the chapters of TestWorks share.
type works struct {
	*fleet
	app string
	// before is what the cluster held when it had joined.
	before []string
}

func (w *works) join(t *testing.T) {
	w.ocm(t, "hub", "init", "--feature-gates", "CleanUpCompletedManifestWork=true", "--context", "hub")
	w.ocm(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept")
	w.before = w.held(t, w.on("c1"))
}

// text writes a text to a file that is removed with the test; VERSION is replaced by that
// of the images. Its path has nothing of the test's name, which may have commas: kubectl
// takes them for the ends of paths.
func text(t *testing.T, name, content string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ocm-e2e-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(content, "VERSION", version(t))), 0o600))
	return path
}

// block writes a file as the guide shows it: the fenced block that begins with the file's
// name.
func (w *works) block(t *testing.T, name string) string {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join(root, workGuide))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(guide), "```yaml\n# "+name+"\n")
	require.True(t, found, "the guide has no file %s", name)
	content, _, found := strings.Cut(rest, "```\n")
	require.True(t, found)
	return text(t, name, content)
}

// kubectl runs a kubectl command line of the guide.
func (w *works) kubectl(t *testing.T, c *nodes.Cluster, arguments ...string) {
	t.Helper()
	kubectl(t, c, arguments...)
	w.typed["kubectl --context "+c.Name+" "+strings.Join(arguments, " ")] = true
}

// await waits with kubectl for a condition of a work.
func (w *works) await(t *testing.T, name, condition string) {
	t.Helper()
	kubectl(t, w.hub, "-n", "c1", "wait", "--for=condition="+condition, "manifestwork/"+name, "--timeout=180s")
}

// said waits until a manifest of a work has a condition whose message contains a text.
func (w *works) said(t *testing.T, name string, ordinal int, condition, status, message string) {
	t.Helper()
	query := fmt.Sprintf(`jsonpath={range .status.resourceStatus.manifests[%d].conditions[?(@.type==%q)]}{.status}: {.message}{end}`, ordinal, condition)
	eventually(t, func() error {
		got := kubectl(t, w.hub, "-n", "c1", "get", "manifestwork", name, "-o", query)
		if !strings.HasPrefix(got, status+": ") || !strings.Contains(got, message) {
			return fmt.Errorf("%s of manifest %d of %s is %q", condition, ordinal, name, got)
		}
		return nil
	})
}

func (w *works) deploy(t *testing.T) {
	w.ocm(t, "work", "apply", "web", "-f", w.app, "-c", "c1", "--context", "hub", "--wait")
	kubectl(t, w.on("c1"), "-n", "shop", "wait", "--for=condition=Available", "deployment/webdemo", "--timeout=180s")
	var shown string
	eventually(t, func() (err error) {
		shown, err = page(t, w.on("c1"), "shop")
		return err
	})
	require.Contains(t, shown, "<h1>Declared once on the hub</h1>", "the page shows what the ConfigMap says")
	require.Regexp(t, `(?m)^c1 +web +True +True +4/4 `, w.ocm(t, "work", "list", "--context", "hub"))
}

// look checks that neither side shows a difference until a field is changed that the
// agent leaves alone, and that a Pod leads back to its work.
func (w *works) look(t *testing.T) {
	require.Contains(t, w.ocm(t, "work", "tree", "web", "--context", "hub"), "webdemo")
	require.Regexp(t, `Ready +1 `, w.ocm(t, "work", "tree", "--all", "--context", "hub"), "a mark for the cluster")
	require.Empty(t, w.ocm(t, "work", "diff", "web", "--live", "-c", "c1", "--context", "hub"))
	require.Empty(t, w.ocm(t, "work", "diff", "web", "--live", "-c", "c1", "--context", "hub", "--spoke-context", "c1"))
	require.Contains(t, w.ocm(t, "work", "trace", "deploy/webdemo", "-n", "shop", "--context", "c1", "--hub-context", "hub"), "c1/web")
	pod := kubectl(t, w.on("c1"), "-n", "shop", "get", "pods", "-l", "app=webdemo", "-o", "jsonpath={.items[0].metadata.name}")
	require.Regexp(
		t, `(?s)ReplicaSet.*Deployment.*AppliedManifestWork.*Hub.*ManifestWork +c1/web `,
		w.ocm(t, "work", "trace", "pod/"+pod, "-n", "shop", "--context", "c1", "--hub-context", "hub"),
	)
}

// definition sends a kind together with its objects; a user has to grant the right to
// write them, and the status names it while it is missing.
func (w *works) definition(t *testing.T) {
	c := w.on("c1")
	w.kubectl(t, w.hub, "apply", "-f", w.block(t, "widgets.yaml"))
	w.said(t, "widgets", 2, "Applied", "True", "")
	for ordinal := range 2 {
		w.said(t, "widgets", ordinal, "Applied", "False", "forbidden")
	}
	rights := w.block(t, "rights.yaml")
	w.kubectl(t, c, "apply", "-f", rights)
	w.await(t, "widgets", "Applied")
	w.await(t, "widgets", "Available")
	require.Equal(t, "1 2", kubectl(t, c, "get", "widgets", "-o", "jsonpath={.items[*].spec.size}"))
	kubectl(t, w.hub, "-n", "c1", "delete", "manifestwork", "widgets", "--timeout=180s")
	require.Empty(t, uidIn(t, c, "", "crd", "widgets.example.com"))
	kubectl(t, c, "delete", "-f", rights)
}

func (w *works) job(t *testing.T) {
	c := w.on("c1")
	w.kubectl(t, w.hub, "apply", "-f", w.block(t, "job.yaml"))
	w.await(t, "once", "Complete")
	require.Equal(t, "1", kubectl(t, c, "get", "job", "once", "-o", "jsonpath={.status.succeeded}"))
	require.Contains(t, kubectl(t, c, "logs", "job/once"), version(t))
	kubectl(t, w.hub, "-n", "c1", "wait", "--for=delete", "manifestwork/once", "--timeout=180s")
	require.Empty(t, uidIn(t, c, "default", "job", "once"))
	eventually(t, func() error { // pods go with their job
		if pods := kubectl(t, c, "get", "pods", "-l", "job-name=once", "-o", "name"); pods != "" {
			return fmt.Errorf("there is %s", pods)
		}
		return nil
	})
}

func (w *works) scaler(t *testing.T) {
	c := w.on("c1")
	file := w.block(t, "scaled.yaml")
	w.kubectl(t, w.hub, "apply", "-f", file)
	w.await(t, "scaled", "Available")
	kubectl(t, c, "wait", "--for=condition=Available", "deployment/scaled", "--timeout=180s")
	kubectl(t, c, "scale", "deployment/scaled", "--replicas=2")
	const query = `jsonpath={.spec.replicas} {.spec.template.spec.containers[0].env[0].value}`
	become := func(want string) {
		t.Helper()
		eventually(t, func() error {
			if got := kubectl(t, c, "get", "deployment", "scaled", "-o", query); got != want {
				return fmt.Errorf("the Deployment has %q", got)
			}
			return nil
		})
	}
	kubectl(t, c, "set", "env", "deployment/scaled", "MESSAGE=mine")
	become("2 declared")
	kubectl(t, c, "rollout", "status", "deployment/scaled", "--timeout=180s")
	// A change of the work itself does not touch them either.
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	kubectl(t, w.hub, "apply", "-f", text(t, "again.yaml", strings.Replace(string(content), "value: declared", "value: again", 1)))
	become("2 again")
	kubectl(t, w.hub, "-n", "c1", "delete", "manifestwork", "scaled", "--timeout=180s")
	require.Empty(t, uidIn(t, c, "default", "deployment", "scaled"))
}

func (w *works) executor(t *testing.T) {
	c := w.on("c1")
	kubectl(t, c, "create", "namespace", "robots")
	kubectl(t, c, "-n", "robots", "create", "serviceaccount", "robot")
	grant := func(resource string) {
		kubectl(t, c, "-n", "robots", "create", "role", resource, "--verb=get,create,update,patch,delete", "--resource="+resource)
		kubectl(t, c, "-n", "robots", "create", "rolebinding", resource, "--role="+resource, "--serviceaccount=robots:robot")
	}
	grant("configmaps")
	w.kubectl(t, w.hub, "apply", "-f", w.block(t, "robot.yaml"))
	w.said(t, "robot", 0, "Applied", "True", "")
	w.said(t, "robot", 1, "Applied", "False", "not allowed to apply the resource")
	require.Empty(t, uidIn(t, c, "robots", "secret", "later"))
	grant("secrets")
	w.await(t, "robot", "Applied")
	require.NotEmpty(t, uidIn(t, c, "robots", "secret", "later"))
	kubectl(t, w.hub, "-n", "c1", "delete", "manifestwork", "robot", "--timeout=180s")
	require.Empty(t, uidIn(t, c, "robots", "secret", "later"))
	kubectl(t, c, "delete", "namespace", "robots", "--timeout=180s")
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// many returns the ConfigMaps of the work with many objects.
func (w *works) many(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	list, err := w.on("c1").Dynamic().Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{LabelSelector: "many=yes"})
	require.NoError(t, err)
	return list.Items
}

// killMeanwhile gives the agent a work of ever more objects and kills it while it applies them: it
// may be done before a busy machine looks. It returns what was there then, and how many there will be.
func (w *works) killMeanwhile(t *testing.T) (first []unstructured.Unstructured, all int) {
	t.Helper()
	c, killed := w.on("c1"), 0
	for all = 200; ; all *= 2 {
		var list strings.Builder
		for i := range all {
			fmt.Fprintf(&list, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-%d, namespace: default, labels: {many: \"yes\"}}\n", i)
		}
		var pid int
		eventually(t, func() error {
			for _, one := range processes(t, c, "ocm-agent") {
				if pid = one.PID; pid != killed {
					return nil
				}
			}
			return errAbsent
		})
		done := len(first)
		w.ocm(t, "work", "apply", "many", "-f", text(t, "many.yaml", list.String()), "-c", "c1", "--context", "hub")
		eventually(t, func() error {
			if have := len(w.many(t)); have < done+(all-done)/10 {
				return fmt.Errorf("there are %d objects", have)
			}
			return nil
		})
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		killed, first = pid, w.many(t)
		if len(first) < all {
			return first, all
		}
		require.Less(t, all, 1600, "it was killed after its work was done")
	}
}

func (w *works) kill(t *testing.T) {
	first, all := w.killMeanwhile(t)
	t.Logf("measured: killed when %d of %d objects were there", len(first), all)
	w.await(t, "many", "Applied")
	w.await(t, "many", "Available")
	w.requireRecorded(t, "many", all)
	after := map[string]string{}
	for _, one := range w.many(t) {
		after[one.GetName()] = string(one.GetUID()) + " " + one.GetResourceVersion()
	}
	for _, one := range first {
		require.Equal(t, string(one.GetUID())+" "+one.GetResourceVersion(), after[one.GetName()], "what was done is not done again")
	}
}

// requireRecorded checks that the AppliedManifestWork names exactly the objects that
// exist.
func (w *works) requireRecorded(t *testing.T, name string, want int) {
	t.Helper()
	const query = `jsonpath={range .items[*]}{range .status.appliedResources[*]}{.name} {.uid}{"\n"}{end}{end}`
	eventually(t, func() error {
		rows := kubectl(t, w.on("c1"), "get", "appliedmanifestworks", "-o", query)
		recorded := strings.Fields(strings.Join(
			slices.DeleteFunc(strings.Split(rows, "\n"), func(row string) bool { return !strings.HasPrefix(row, name+"-") }),
			" ",
		))
		var have []string
		for _, one := range w.many(t) {
			have = append(have, one.GetName(), string(one.GetUID()))
		}
		slices.Sort(recorded)
		slices.Sort(have)
		if len(have) != 2*want || !slices.Equal(recorded, have) {
			return fmt.Errorf("%d objects are there and %d are recorded", len(have)/2, len(recorded)/2)
		}
		return nil
	})
}

// away is how long the hub is unreachable.
const away = time.Minute

func (w *works) outage(t *testing.T) {
	c := w.on("c1")
	eventually(t, func() error { // pods of deleted works end later
		const ending = `jsonpath={.items[?(@.metadata.deletionTimestamp)].metadata.name}`
		if names := kubectl(t, c, "get", "pods", "--all-namespaces", "-o", ending); names != "" {
			return fmt.Errorf("the pods %s are still there", names)
		}
		return nil
	})
	before := w.held(t, c)
	require.NoError(t, w.hub.KillProcess(nodes.APIServer))
	down := time.Now()
	for round := 0; time.Since(down) < away; round++ {
		w.spoil(t, c, round)
		begin := time.Now()
		eventually(t, func() error {
			if time.Since(begin) < away/4 {
				return errAbsent
			}
			return nil
		})
	}
	w.holds(t, c, before)
	require.NoError(t, w.hub.Restart(t.Context(), nodes.APIServer))
	kubectl(t, w.hub, "-n", hubNamespace, "rollout", "status", hubPods, "--timeout=180s")
	file := work(t, "c1", "after-the-outage")
	eventually(t, func() error { // admission may be away for a moment
		_, err := w.hub.Kubectl(t.Context(), "apply", "-f", file)
		return err
	})
	w.await(t, "after-the-outage", "Available")
	kubectl(t, w.hub, "-n", "c1", "delete", "manifestwork", "after-the-outage", "--timeout=180s")
	w.holds(t, c, before) // nothing was deleted, and nothing else is there
}

// spoil deletes an object and changes another, and waits until both are repaired.
func (w *works) spoil(t *testing.T, c *nodes.Cluster, round int) {
	t.Helper()
	old := uidOf(t, c, "configmap", "webdemo")
	kubectl(t, c, "-n", "shop", "delete", "configmap", "webdemo", "--wait=false")
	kubectl(t, c, "-n", "shop", "patch", "service", "webdemo", "--type=merge", "-p", fmt.Sprintf(`{"metadata":{"labels":{"app":"mine-%d"}}}`, round))
	took := eventually(t, func() error {
		if now := uidOf(t, c, "configmap", "webdemo"); now == "" || now == old || label(t, c, "app") != "webdemo" {
			return errAbsent
		}
		return nil
	})
	t.Logf("measured: without a hub both are right after %s (kubectl's own start included)", took.Round(time.Millisecond))
}

func (w *works) delete(t *testing.T) {
	for _, name := range []string{"web", "many"} {
		w.ocm(t, "work", "delete", name, "-c", "c1", "--context", "hub", "--yes")
	}
	c := w.on("c1")
	w.holds(t, c, w.before)
	require.Empty(t, kubectl(t, c, "get", "appliedmanifestworks", "-o", "name"))
}
