// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	clusters    = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1", Resource: "managedclusters"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// patience is how long a test waits for what has to happen. It is far more than a busy machine
// needs, and costs a passing test nothing.
const patience = 5 * time.Minute

// atMost is how long a command may run: longer than the time that it is given by --timeout, after
// which it says itself what it waits for.
const atMost = patience + time.Minute

// eventually waits until ok returns true, a pause before each try. It calls ok in the test's own
// goroutine, so that ok may end the test, and nothing of it goes on when the test has ended.
func eventually(t testing.TB, ok func() bool, limit, pause time.Duration, message ...any) {
	t.Helper()
	for end := time.Now().Add(limit); ; {
		<-time.After(pause)
		if ok() {
			return
		}
		if time.Now().After(end) {
			require.Fail(t, "what is waited for does not come", message...)
		}
	}
}

// said is the output of one run of the program, and its exit code.
type said struct {
	code     int
	out, err string
}

// run runs the program in this process with the kubeconfig of the test.
func run(t testing.TB, words ...string) said {
	t.Helper()
	return runWith(t, "", words...)
}

func runWith(t testing.TB, stdin string, words ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	var out, err bytes.Buffer
	s := app.Streams{In: strings.NewReader(stdin), Out: &out, Err: &err, Clock: clock.RealClock{},
		Getenv: func(name string) string { return map[string]string{"LANG": "C.UTF-8"}[name] }}
	code := app.Run(ctx, s, append([]string{"kubectl-ocm", "--kubeconfig", configOf(t)}, words...))
	t.Logf("kubectl ocm %s\nexit %d\n%s%s", strings.Join(words, " "), code, out.String(), err.String())
	return said{code, out.String(), err.String()}
}

// runsOut runs a command whose wait cannot end, and returns what it says when its time is over. The
// time grows until the program says want, in which %s is the time: a short one is over before the wait
// begins, and wherever it ends is the same exit code.
func runsOut(t testing.TB, stdin, want string, words ...string) said {
	t.Helper()
	for limit := 20 * time.Millisecond; ; limit *= 3 {
		got := runWith(t, stdin, append(slices.Clone(words), "--timeout", limit.String())...)
		require.Equal(t, 4, got.code, got.err)
		text := strings.ReplaceAll(want, "%s", limit.String())
		if limit > time.Minute || strings.Contains(got.err, text) {
			require.Contains(t, got.err, text)
			return got
		}
	}
}

// kubeconfigs holds the path of the kubeconfig of each test. It is not in the environment,
// because tests run side by side in one process.
var kubeconfigs sync.Map

// kubeconfig gives a test and its subtests a kubeconfig with these clusters as contexts.
func kubeconfig(t testing.TB, all ...*harness.Cluster) {
	t.Helper()
	named := map[string]*harness.Cluster{}
	for _, c := range all {
		named[c.Name] = c
	}
	contexts(t, named)
}

// contexts gives a test and its subtests a kubeconfig with the clusters as contexts of these
// names.
func contexts(t testing.TB, clusters map[string]*harness.Cluster) {
	t.Helper()
	merged := clientcmdapi.NewConfig()
	for name, c := range clusters {
		one, err := clientcmd.LoadFromFile(c.Kubeconfig)
		require.NoError(t, err)
		current := one.Contexts[one.CurrentContext]
		merged.Clusters[name], merged.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*merged, file))
	kubeconfigs.Store(testOf(t), file)
}

// testOf returns the name of the test that a subtest belongs to.
func testOf(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

func configOf(t testing.TB) string {
	t.Helper()
	file, ok := kubeconfigs.Load(testOf(t))
	require.True(t, ok, "the test has no kubeconfig")
	return file.(string)
}

// environment is that of other programs of a test: with its kubeconfig and a home folder of its
// own.
func environment(t testing.TB) []string {
	t.Helper()
	file := configOf(t)
	return append(os.Environ(), "KUBECONFIG="+file, "HOME="+filepath.Dir(file))
}

// paths turns words that name a file in a folder into its path, because the working directory
// is that of all tests.
func paths(folder string, words []string) []string {
	out := slices.Clone(words)
	for i, word := range words {
		path := filepath.Join(folder, word)
		if _, err := os.Stat(path); err == nil {
			out[i] = path
		}
	}
	return out
}

// asHub installs the API of a hub and the rights of hub init on a cluster, without the
// hub process, and waits until both are in effect.
func asHub(t testing.TB, c *harness.Cluster) dynamic.Interface {
	t.Helper()
	client := c.Dynamic(t)
	kinds, err := crd.Hub()
	require.NoError(t, err)
	for _, kind := range kinds {
		unstructured.RemoveNestedField(kind.Object, "spec", "conversion")
		_, err := client.Resource(definitions).Create(t.Context(), kind, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	for _, kind := range kinds {
		isServed(t, client, kind)
	}
	require.Zero(t, run(t, "hub", "init", "--context", c.Name, "--wait=false").code)
	mayAsk(t, client, map[string]any{"user": "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"})
	mayAsk(t, client, map[string]any{"user": "system:bootstrap:abcdef", "groups": []any{"system:bootstrappers:managedcluster"}})
	return client
}

// isServed waits until objects of a definition can be listed in each of its versions: an API server
// serves a definition only some time after it is stored.
func isServed(t testing.TB, client dynamic.Interface, definition *unstructured.Unstructured) {
	t.Helper()
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	require.NotEmpty(t, versions, definition.GetName())
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		if fields["served"] != true {
			continue
		}
		api := client.Resource(schema.GroupVersionResource{Group: group, Version: name, Resource: plural})
		var err error
		served := harness.Until(patience, func() bool {
			_, err = api.List(t.Context(), metav1.ListOptions{Limit: 1})
			return err == nil
		})
		require.True(t, served, "%s %s: %v", definition.GetName(), name, err)
	}
}

// mayAsk waits until the holder of a join token may ask for a certificate: an API server learns of
// new rights some time after they are stored.
func mayAsk(t testing.TB, client dynamic.Interface, who map[string]any) {
	t.Helper()
	spec := map[string]any{"resourceAttributes": map[string]any{"group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create"}}
	maps.Copy(spec, who)
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}}
	reviews := client.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"})
	require.True(t, harness.Until(patience, func() bool {
		answer, err := reviews.Create(t.Context(), review.DeepCopy(), metav1.CreateOptions{})
		require.NoError(t, err)
		allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
		return allowed
	}), "%v may not ask", who)
}
