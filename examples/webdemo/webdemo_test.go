// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestPageSaysWhereItRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want page
	}{
		"told nothing": {
			want: page{Message: "Hello from unknown", Cluster: "unknown", Node: "unknown", Pod: "unknown", Version: "v1"},
		},
		"called after its node": {
			env:  map[string]string{"NODE_NAME": "c1", "POD_NAME": "web-1"},
			want: page{Message: "Hello from c1", Cluster: "c1", Node: "c1", Pod: "web-1", Version: "v1"},
		},
		"told everything": {
			env:  map[string]string{"NODE_NAME": "n1", "POD_NAME": "web-1", "CLUSTER_NAME": "c1", "MESSAGE": "hi"},
			want: page{Message: "hi", Cluster: "c1", Node: "n1", Pod: "web-1", Version: "v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := pageFrom(func(key string) string { return tc.env[key] }, "v1")
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestRequestsAreAnswered(t *testing.T) {
	content, err := handler(page{Message: "<b>hi</b>", Cluster: "c1"})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		method, path string
		code         int
		want         string
	}{
		"the page, with what it shows escaped": {"GET", "/", 200, "<h1>&lt;b&gt;hi&lt;/b&gt;</h1>"},
		"the health check":                     {"GET", "/healthz", 200, "ok"},
		"a page that is not there":             {"GET", "/other", 404, "not found"},
		"a method that is not served":          {"POST", "/", 405, "Method Not Allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			content.ServeHTTP(answer, httptest.NewRequest(tc.method, tc.path, nil))
			require.Equal(t, tc.code, answer.Code)
			require.Contains(t, answer.Body.String(), tc.want)
		})
	}
}

func TestOpenRequestsEndBeforeTheServer(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, stop := context.WithCancel(context.Background())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	arrived, release := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(w, "done")
	})
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, slow) }()
	body := make(chan string, 1)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	go func() {
		answer, err := client.Get("http://" + listener.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer answer.Body.Close()
		all, _ := io.ReadAll(answer.Body)
		body <- string(all)
	}()
	<-arrived
	stop()
	close(release)
	require.Equal(t, "done", <-body)
	require.NoError(t, <-ended)
}

// TestManifestsFitTheProgram decodes the manifests strictly and compares them with the
// program.
func TestManifestsFitTheProgram(t *testing.T) {
	body, err := os.ReadFile("manifests.yaml")
	require.NoError(t, err)
	documents := strings.Split(string(body), "\n---\n")
	require.Len(t, documents, 3)
	var settings corev1.ConfigMap
	var deployment appsv1.Deployment
	var service corev1.Service
	for i, into := range []any{&settings, &deployment, &service} {
		require.NoError(t, yaml.UnmarshalStrict([]byte(documents[i]), into))
	}
	require.Empty(t, settings.Namespace+deployment.Namespace+service.Namespace, "the user picks the namespace")
	require.NotEmpty(t, settings.Data["message"])
	pod := deployment.Spec.Template
	require.Equal(t, service.Spec.Selector, pod.Labels)
	require.Equal(t, deployment.Spec.Selector.MatchLabels, pod.Labels)
	container := pod.Spec.Containers[0]
	require.EqualValues(t, port, container.Ports[0].ContainerPort)
	require.EqualValues(t, port, service.Spec.Ports[0].Port)
	require.Equal(t, container.Ports[0].Name, service.Spec.Ports[0].TargetPort.StrVal)
	released, err := os.ReadFile("../../VERSION")
	require.NoError(t, err)
	require.Equal(t, "ghcr.io/kubectl-ocm/webdemo:"+strings.TrimSpace(string(released)), container.Image)
}
