// SPDX-License-Identifier: Apache-2.0

//go:build perf

package work

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

// accepted is a hub whose clusters are all accepted; it answers nothing else.
type accepted struct{ webhook.Hub }

// Denied reports that no cluster is.
func (accepted) Denied(context.Context, string) (bool, error) { return false, nil }

// TestAdmissionOfAWorkKeepsItsBudget measures the CPU time of one review of a new work of
// ten Deployments, without the API server's part.
func TestAdmissionOfAWorkKeepsItsBudget(t *testing.T) {
	const reviews = 500
	handler := webhook.NewServer(webhook.Options{
		Hub: accepted{}, Features: func() webhook.Features { return webhook.Features{} }, Clock: clock.RealClock{},
	}).Handler()
	var list []string
	for i := range 10 {
		list = append(list, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%d","namespace":"default","labels":{"app":"web"}},
			"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[
			{"name":"web","image":"registry.example.com/web:1","ports":[{"containerPort":8080}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],
			"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},
			"readinessProbe":{"httpGet":{"path":"/ready","port":8080},"periodSeconds":5}}]}}}}`, i))
	}
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"c1",
		"userInfo":{"username":"user"},"object":{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
		"metadata":{"name":"web","namespace":"c1"},"spec":{"workload":{"manifests":[%s]}}}}}`, strings.Join(list, ","))
	review := func() *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, webhook.PathValidateWork, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		return w
	}
	require.Contains(t, review().Body.String(), `"allowed":true`)
	before := budget.CPUTime(t, os.Getpid())
	for range reviews {
		review()
	}
	took := (budget.CPUTime(t, os.Getpid()) - before) / reviews
	budget.Open(t, "../admission.yaml").Time("work", []time.Duration{took}, budget.CPU(t))
}
