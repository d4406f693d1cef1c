// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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

// said is the output of one run of the program, and its exit code.
type said struct {
	code     int
	out, err string
}

// run runs the program in this process, as in a shell whose KUBECONFIG names all clusters
// of the test.
func run(t testing.TB, words ...string) said {
	t.Helper()
	return runWith(t, "", words...)
}

func runWith(t testing.TB, stdin string, words ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	s := app.Streams{In: strings.NewReader(stdin), Out: &out, Err: &err, Clock: clock.RealClock{},
		Getenv: func(name string) string { return map[string]string{"LANG": "C.UTF-8"}[name] }}
	code := app.Run(ctx, s, append([]string{"kubectl-ocm"}, words...))
	t.Logf("kubectl ocm %s\nexit %d\n%s%s", strings.Join(words, " "), code, out.String(), err.String())
	return said{code, out.String(), err.String()}
}

// kubeconfig writes a kubeconfig with the clusters of a test as contexts.
func kubeconfig(t testing.TB, all ...*harness.Cluster) {
	t.Helper()
	var paths []string
	for _, c := range all {
		paths = append(paths, c.Kubeconfig)
	}
	t.Setenv("KUBECONFIG", strings.Join(paths, ":"))
	t.Setenv("HOME", t.TempDir())
}

// asHub installs the API of a hub and the rights of hub init on a cluster, without the
// hub process.
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
	require.Eventually(t, func() bool {
		_, err := client.Resource(clusters).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
	require.Zero(t, run(t, "hub", "init", "--context", c.Name, "--wait=false").code)
	return client
}
